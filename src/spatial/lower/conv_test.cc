#include "spatial/lower/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/compose.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using testing::CaseOperand;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::OpCase;
using testing::Outcome;
using testing::reals;
using testing::view_of;

OpCase conv(uint64_t rows, uint64_t taps, uint64_t chan) {
  return {graph::CausalConv{}, {reals("x", rows, chan, rows), reals("w", taps, chan, 2), reals("ring", taps, chan, 3)}};
}

std::vector<double> ring_of(const Outcome& outcome) { return *outcome.memory.reals("ring"); }

// Lowers, compares the outputs within the tolerance and the ring in bits.
struct Ran {
  Lowered lowered;
  Outcome outcome;
};
Ran expect_conv(const OpCase& c, const Target& target) {
  Ran ran{expect_lowers(c, target), {}};
  if (ran.lowered.sections.empty()) return ran;
  ran.outcome = testing::run(ran.lowered.sections, c, target);
  EXPECT_EQ(ring_of(ran.outcome), *testing::reference_of(c, target, "ring"));
  return ran;
}

// ---- steps ----

TEST(CausalConv, AStepInEitherRing) {
  struct Shape {
    uint64_t taps, chan;
    std::string_view form;
  };
  for (const Shape& s : {Shape{3, 2, "flat ring"}, Shape{1, 1, "flat ring"}, Shape{1, 8, "flat ring"},
                         Shape{8, 1, "flat ring"}, Shape{2, 4, "flat ring"}, Shape{3, 4, "dense ring"},
                         Shape{4, 9, "dense ring"}, Shape{1, 13, "dense ring"}, Shape{2, 8, "dense ring"}})
    EXPECT_EQ(expect_conv(conv(1, s.taps, s.chan), testing::t4()).lowered.form, s.form) << s.taps << "x" << s.chan;
  EXPECT_EQ(expect_conv(conv(1, 4, 20), testing::t32()).lowered.form, "flat ring");
  EXPECT_EQ(expect_conv(conv(1, 4, 96), testing::t32()).lowered.form, "dense ring");
  EXPECT_EQ(expect_conv(conv(1, 3, 5), testing::t1()).lowered.form, "flat ring");
  EXPECT_EQ(expect_conv(conv(1, 5, 9), testing::tall()).lowered.form, "dense ring");
}

TEST(CausalConv, TenStepsCarryTheRing) {
  for (const uint64_t chan : {2, 4, 7}) {
    OpCase c = conv(1, 3, chan);
    for (uint64_t step = 0; step < 10; ++step) {
      c.operands[0] = reals("x", 1, chan, 100 + step);
      c.operands[2]->values = ring_of(expect_conv(c, testing::t4()).outcome);
    }
  }
}

TEST(CausalConv, ASiteThatTheFlatStepDoesNotFitTakesTheDenseRing) {
  // Seven tiles of ring and seven of weights, of 32 bytes each.
  const OpCase c = conv(1, 4, 7);
  Target target = testing::t4_with(1000);
  target.accumulator_tiles = 8;
  EXPECT_EQ(expect_conv(c, target).lowered.form, "flat ring");
  target.local_bytes = 400;
  const Ran ran = expect_conv(c, target);
  EXPECT_EQ(ran.lowered.form, "dense ring");
  EXPECT_THAT(ran.lowered.why, HasSubstr("does not fit"));
  EXPECT_TRUE(conv_ring_is_dense(view_of(conv(5, 4, 7), target)));
}

// ---- blocks ----

TEST(CausalConv, ABlockOfRows) {
  for (const uint64_t chan : {2, 4, 9, 17})
    for (uint64_t rows = 2; rows <= 10; ++rows)
      for (const uint64_t taps : {1, 2, 3, 4})
        EXPECT_EQ(expect_conv(conv(rows, taps, chan), testing::t4()).lowered.form, "block of rows");
  for (const uint64_t rows : {2, 31, 33, 70}) {
    expect_conv(conv(rows, 4, 20), testing::t32());
    expect_conv(conv(rows, 4, 96), testing::t32());
  }
  for (const uint64_t rows : {5, 8, 9, 17}) {
    expect_conv(conv(rows, 8, 3), testing::tall());
    expect_conv(conv(rows, 7, 1), testing::tall());
  }
  expect_conv(conv(4, 1, 5), testing::t1());
}

TEST(CausalConv, ABlockIsItsStepsInBits) {
  for (const Target& target : {testing::t4(), testing::t4f()})
    for (const uint64_t chan : {2, 6})
      for (const uint64_t rows : {2, 3, 6, 9}) {
        const OpCase block = conv(rows, 3, chan);
        const Outcome whole = expect_conv(block, target).outcome;
        OpCase step = conv(1, 3, chan);
        std::vector<double> outputs;
        for (uint64_t r = 0; r < rows; ++r) {
          const auto from = block.operands[0]->values.begin() + static_cast<ptrdiff_t>(r * chan);
          step.operands[0]->values.assign(from, from + static_cast<ptrdiff_t>(chan));
          const Outcome one = expect_conv(step, target).outcome;
          outputs.insert(outputs.end(), one.values.begin(), one.values.end());
          step.operands[2]->values = ring_of(one);
        }
        EXPECT_EQ(whole.values, outputs) << rows << " rows of " << chan;
        EXPECT_EQ(ring_of(whole), step.operands[2]->values);
      }
}

TEST(CausalConv, TheRingLiesWhereItsLayoutSays) {
  const Outcome dense = expect_conv(conv(5, 3, 6), testing::t4()).outcome;
  EXPECT_EQ(dense.memory.find("ring")->tensor.rows, 3U);
  const Outcome flat = expect_conv(conv(5, 3, 2), testing::t4()).outcome;
  EXPECT_EQ(flat.memory.find("ring")->tensor.rows, 1U);
}

// ---- the step ----

// The ring is updated in place, so that nothing is handed over when the step is over.
TEST(CausalConv, ComposesIntoAStep) {
  for (const uint64_t rows : {1, 5}) {
    const OpCase c = conv(rows, 3, 6);
    const Result<Lowered> lowered = lower_op(c.spec, view_of(c, testing::t4()));
    ASSERT_TRUE(lowered.ok());
    const Result<Composition> step = compose(lowered->sections, {.name = "step", .outputs = {}});
    ASSERT_TRUE(step.ok()) << to_text(step.refusal());
    EXPECT_TRUE(step->carried.empty());
    ASSERT_TRUE(step->first("ring").has_value());
    EXPECT_EQ(step->at(*step->first("ring")).role, StepRole::State);
    EXPECT_EQ(step->first("ring"), step->last("ring"));
  }
}

// ---- order ----

TEST(CausalConv, SectionsInTheWrongOrderFault) {
  for (const auto& [rows, chan] : {std::pair{1U, 2U}, std::pair{1U, 6U}, std::pair{5U, 2U}, std::pair{5U, 6U}}) {
    const OpCase c = conv(rows, 3, chan);
    const Result<Lowered> lowered = lower_op(c.spec, view_of(c, testing::t4()));
    ASSERT_TRUE(lowered.ok());
    evaluate::Memory memory(testing::t4().tile);
    for (const std::optional<CaseOperand>& operand : c.operands)
      for (const Program& section : lowered->sections)
        for (const Tensor& tensor : section.tensors) {
          if (tensor.name != operand->tensor.name || memory.find(tensor.name)) continue;
          ASSERT_TRUE(memory.set(tensor, std::span<const double>(operand->values)).ok());
        }
    Result<evaluate::Step> step = evaluate::Step::compile(lowered->sections);
    ASSERT_TRUE(step.ok());
    evaluate::StepOptions options;
    options.order = {1, 0};
    const Result<evaluate::StepRun> run = step->run(memory, options);
    ASSERT_TRUE(run.ok());
    ASSERT_TRUE(run->fault.has_value()) << rows << " rows of " << chan;
    EXPECT_EQ(run->fault->kind, evaluate::FaultKind::WrongVersion);
  }
}

// ---- refusals ----

TEST(CausalConv, WhatHasNoFormIsRefused) {
  const auto refused = [](const OpCase& c, const Target& target, RefusalKind kind) {
    const Refusal refusal = expect_refused(c, target);
    EXPECT_EQ(refusal.kind, kind);
    EXPECT_EQ(refusal.subject, "y");
  };
  refused(conv(1, 5, 4), testing::t4(), RefusalKind::Unsupported);  // dense: five taps in four rows
  refused(conv(3, 5, 1), testing::t4(), RefusalKind::Unsupported);  // a block over a flat ring
  refused(conv(2, 2, 3), testing::t1(), RefusalKind::Unsupported);
  refused(conv(1, 3, 2), testing::without_reals(), RefusalKind::Missing);
  refused(conv(3, 3, 2), testing::without_reals(), RefusalKind::Missing);
  OpCase own_weights = conv(3, 3, 2);  // a matrix, and a row of taps
  own_weights.operands[1] = own_weights.operands[0];
  refused(own_weights, testing::t4(), RefusalKind::Unsupported);
  refused(conv(1, 3, 4), testing::t4_with(100), RefusalKind::TooLarge);
  refused(conv(5, 3, 4), testing::t4_with(100), RefusalKind::TooLarge);

  const Target target = testing::t4();
  EXPECT_EQ(conv_step_flat(view_of(conv(3, 3, 2), target)).refusal().kind, RefusalKind::Unsupported);
  EXPECT_EQ(conv_step_matrix(view_of(conv(3, 3, 2), target)).refusal().kind, RefusalKind::Unsupported);
  OpView view = view_of(conv(1, 3, 2), target);
  view.operands[1]->rows = view.operands[2]->rows = 0;
  EXPECT_EQ(lower(graph::CausalConv{}, view).refusal().kind, RefusalKind::Unsupported);
  view.operands[1]->rows = 2;
  EXPECT_EQ(lower(graph::CausalConv{}, view).refusal().kind, RefusalKind::Unsupported);
}

TEST(CausalConv, AModelsChannels) {
  EXPECT_EQ(expect_conv(conv(1, 4, 2048), testing::t32()).lowered.sections[0].work.items.size(), 64U);
  EXPECT_EQ(expect_conv(conv(33, 4, 2048), testing::t32()).lowered.sections[0].work.items.size(), 2U * 8);
}

}  // namespace
}  // namespace tw::spatial::lower
