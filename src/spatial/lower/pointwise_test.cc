#include "spatial/lower/pointwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using graph::ActivationKind;
using testing::CaseOperand;
using ::testing::ElementsAre;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::OpCase;
using testing::reals;

constexpr ActivationKind kKinds[] = {ActivationKind::Silu, ActivationKind::Sigmoid, ActivationKind::GeluTanh,
                                     ActivationKind::Relu, ActivationKind::Tanh,    ActivationKind::Softplus,
                                     ActivationKind::Exp};

OpCase activation(ActivationKind kind, uint64_t rows, uint64_t cols, uint64_t seed) {
  return {graph::Activate{kind}, {reals("x", rows, cols, seed, -6, 6)}};
}

TEST(Pointwise, EveryActivationInEveryForm) {
  for (const ActivationKind kind : kKinds) {
    for (const uint64_t n : {1, 33, 256, 257}) {
      const Lowered lowered = expect_lowers(activation(kind, 1, n, n), testing::t32());
      EXPECT_EQ(lowered.form, n > 256 ? "blocked" : "whole row");
    }
    for (const uint64_t n : {1, 5, 8, 9, 30}) expect_lowers(activation(kind, 1, n, n), testing::t4());
    EXPECT_EQ(expect_lowers(activation(kind, 2, 5, 3), testing::t4()).form, "matrix");
    EXPECT_EQ(expect_lowers(activation(kind, 2, 33, 3), testing::t32()).form, "matrix");
    expect_lowers(activation(kind, 3, 7, 4), testing::t1());
    expect_lowers(activation(kind, 9, 9, 5), testing::tall());
  }
}

TEST(Pointwise, ScaleAndSoftcapInEveryForm) {
  for (const graph::OpSpec& spec : {graph::OpSpec{graph::Scale{-0.375F}}, graph::OpSpec{graph::Softcap{30}}})
    for (const auto& [rows, cols] : {std::pair{1U, 7U}, std::pair{1U, 21U}, std::pair{3U, 9U}})
      expect_lowers({spec, {reals("x", rows, cols, cols, -90, 90)}}, testing::t4());
}

std::vector<double> run_on(const graph::OpSpec& spec, std::vector<double> x, const Target& target) {
  OpCase c{spec, {reals("x", 1, x.size(), 1)}};
  c.operands[0]->values = std::move(x);
  const Result<Lowered> lowered = lower_op(spec, testing::view_of(c, target));
  EXPECT_TRUE(lowered.ok());
  return testing::run(lowered->sections, c, target).values;
}

TEST(Pointwise, TailsAreExact) {
  for (const Target& target : {testing::t4(), testing::t32(), testing::t4f()}) {
    const std::vector<double> ends{1e4, -1e4, 3e38, -3e38};
    EXPECT_THAT(run_on(graph::Softcap{30}, ends, target), ElementsAre(30, -30, 30, -30));
    EXPECT_THAT(run_on(graph::Activate{ActivationKind::Tanh}, ends, target), ElementsAre(1, -1, 1, -1));
    EXPECT_THAT(run_on(graph::Activate{ActivationKind::Sigmoid}, ends, target), ElementsAre(1, 0, 1, 0));
    const double rounded = round_to(*target.real_element, 1e4);
    for (const ActivationKind kind :
         {ActivationKind::GeluTanh, ActivationKind::Silu, ActivationKind::Relu, ActivationKind::Softplus})
      EXPECT_THAT(run_on(graph::Activate{kind}, {1e4, -1e4}, target), ElementsAre(rounded, 0));
  }
}

TEST(Pointwise, BlockedIsTheWholeRowInBits) {
  for (const ActivationKind kind : kKinds) {
    const OpCase c = activation(kind, 1, 7, 11);
    const Target target = testing::t4();
    const OpView view = testing::view_of(c, target);
    const UnaryMap map{"map", silu(arg(0))};
    const Result<Program> row = unary_row(map, view), blocked = unary_blocked(map, view);
    ASSERT_TRUE(row.ok() && blocked.ok());
    EXPECT_EQ(row->name, blocked->name);
    EXPECT_EQ(testing::run({*row}, c, testing::t4()).values, testing::run({*blocked}, c, testing::t4()).values);
  }
}

// sigmoid(0) is a half: what a stage makes of padding columns must not reach memory.
TEST(Pointwise, PaddingStaysZero) {
  for (const auto& [rows, cols] : {std::pair{1U, 9U}, std::pair{2U, 5U}}) {
    const OpCase c = activation(ActivationKind::Sigmoid, rows, cols, 3);
    const Lowered lowered = expect_lowers(c, testing::t4());
    const testing::Outcome outcome = testing::run(lowered.sections, c, testing::t4());
    const evaluate::Stored& y = *outcome.memory.find("y");
    for (uint64_t r = 0; r < y.grid.rows * 4; ++r)
      for (uint64_t column = 0; column < y.grid.cols * 4; ++column) {
        if (r < rows && column < cols) continue;
        for (const std::byte code : outcome.memory.code(y, r, column))
          EXPECT_EQ(code, std::byte{0}) << r << ", " << column;
      }
  }
}

// ---- integers ----

OpCase whole(const graph::OpSpec& spec, std::vector<double> x, uint64_t rows = 1) {
  const uint64_t cols = x.size() / rows;
  return {spec,
          {CaseOperand{{.name = "x", .rows = rows, .cols = cols, .fill = GivenFill{}, .integer = true}, std::move(x)}}};
}

TEST(Pointwise, IntegersAreExactInEveryForm) {
  const graph::OpSpec specs[] = {graph::IntRequant{3, 2},        graph::IntRequant{-1, 0},
                                 graph::IntRequant{1 << 30, 40}, graph::IntClamp{-128, 127},
                                 graph::IntClamp{0, 0},          graph::Activate{ActivationKind::Relu}};
  for (const graph::OpSpec& spec : specs)
    for (const auto& [rows, cols] : {std::pair{1U, 7U}, std::pair{1U, 13U}, std::pair{3U, 5U}})
      for (const Target& target : {testing::t4(), testing::t1(), testing::without_reals()})
        expect_lowers({spec, {testing::integers("x", rows, cols, rows + cols, -2000000, 2000000)}}, target);
  for (const graph::OpSpec& spec : specs)
    expect_lowers({spec, {testing::integers("x", 1, 7, 5, -2000000, 2000000)}}, testing::t32());
}

TEST(Pointwise, ShiftsRoundDownAndClampsHold) {
  const auto made = [](const graph::OpSpec& spec, std::vector<double> x) {
    const OpCase c = whole(spec, std::move(x));
    return testing::run(expect_lowers(c, testing::t4()).sections, c, testing::t4()).values;
  };
  EXPECT_THAT(made(graph::IntRequant{1, 1}, {-1, -2, -3, 3, 1, 0}), ElementsAre(-1, -1, -2, 1, 0, 0));
  EXPECT_THAT(made(graph::IntRequant{3, 2}, {-1, 1, -5}), ElementsAre(-1, 0, -4));
  EXPECT_THAT(made(graph::IntRequant{1 << 30, 62}, {-1, 1, 2147483647}), ElementsAre(-1, 0, 0));
  EXPECT_THAT(made(graph::IntClamp{-128, 127}, {-2147483648.0, -129, -128, 127, 128, 2147483647}),
              ElementsAre(-128, -128, -128, 127, 127, 127));
  EXPECT_THAT(made(graph::Activate{ActivationKind::Relu}, {-2147483648.0, -1, 0, 1, 2147483647}),
              ElementsAre(0, 0, 0, 1, 2147483647));
}

TEST(Pointwise, AnIntegerThatDoesNotFitFaults) {
  for (const uint64_t n : {1, 9}) {
    std::vector<double> x(n, 1);
    x.back() = 1 << 30;
    EXPECT_EQ(testing::expect_fault(whole(graph::IntRequant{4, 1}, x), testing::t4()).kind,
              evaluate::FaultKind::Overflow);
  }
}

// ---- refusals ----

TEST(Pointwise, WhatATargetLacksIsRefusedByName) {
  Refusal refusal = expect_refused(activation(ActivationKind::Silu, 1, 5, 1), testing::without_reals());
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_EQ(refusal.subject, "y");
  Target floats = testing::t4();
  floats.integer_element.reset();
  floats.integer_accumulator.reset();
  for (const uint64_t rows : {1, 3}) {
    refusal = expect_refused(whole(graph::IntClamp{0, 9}, std::vector<double>(6, 1), rows), floats);
    EXPECT_EQ(refusal.kind, RefusalKind::Missing);
    EXPECT_THAT(to_text(refusal), HasSubstr("integer"));
  }
  Target dull = testing::t4();
  dull.capabilities.erase(Capability::Ln);
  refusal = expect_refused(activation(ActivationKind::Softplus, 1, 5, 1), dull);
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_THAT(to_text(refusal), HasSubstr("ln"));
}

TEST(Pointwise, AWideRowInOnePageIsRefusedByTheAccumulator) {
  const OpCase c = activation(ActivationKind::Silu, 1, 9, 1);
  const Result<Program> row = unary_row({"silu", silu(arg(0))}, testing::view_of(c, testing::t4()));
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.refusal().kind, RefusalKind::TooLarge);
  EXPECT_EQ(row.refusal().subject, "y");
}

}  // namespace
}  // namespace tw::spatial::lower
