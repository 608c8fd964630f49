// What the certificate lets pass must not misbehave when it runs: random programs, as they are and with one number
// changed, certified and then run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "spatial/certify/certify.h"
#include "spatial/certify/recheck.h"
#include "spatial/certify/testing.h"
#include "spatial/evaluate/evaluate.h"
#include "spatial/evaluate/testing/random_program.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

// A target that has everything, of the program's tile.
Target target_of(const Program& program) {
  Target target = testing::toy_target(program.tile, 1 << 16, uint64_t{1} << 40);
  target.name = program.target;
  for (int p = 0; p < kPrecisions; ++p) {
    target.precisions.insert(static_cast<Precision>(p));
    target.matmul_operands.insert(static_cast<Precision>(p));
  }
  for (int c = 0; c < kCapabilities; ++c) target.capabilities.insert(static_cast<Capability>(c));
  return target;
}

class Mutator {
 public:
  Mutator(Program& program, uint64_t seed) : program_(program), random_(seed) {}

  // One number of the program, larger or smaller by one or gone.
  void mutate() {
    constexpr std::array<void (Mutator::*)(), 8> kKinds{&Mutator::depth,  &Mutator::address, &Mutator::step,
                                                        &Mutator::level,  &Mutator::map,     &Mutator::rectangle,
                                                        &Mutator::bounds, &Mutator::operand};
    (this->*kKinds[pick(kKinds.size())])();
    program_.edges = derive_edges(program_);
  }

 private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  Stage& any_stage() { return program_.stages[pick(program_.stages.size())]; }
  static AccessPattern* pattern(Stage& stage) {
    if (auto* load = std::get_if<Load>(&stage.kind)) return &load->pattern;
    auto* store = std::get_if<Store>(&stage.kind);
    return store ? &store->pattern : nullptr;
  }
  static Generic* generic(Stage& stage) {
    auto* compute = std::get_if<Compute>(&stage.kind);
    return compute ? std::get_if<Generic>(&compute->op) : nullptr;
  }
  template <class T>
  void nudge(T& number) {
    if (number > 0 && pick(2) == 0) {
      --number;
    } else {
      ++number;
    }
  }

  void depth() {
    uint32_t& depth = program_.buffers[pick(program_.buffers.size())].depth;
    if (depth > 1) --depth;
  }
  void address() {
    if (AccessPattern* p = pattern(any_stage())) nudge(p->origin.base);
  }
  void step() {
    AccessPattern* p = pattern(any_stage());
    if (!p || p->origin.steps.empty()) return;
    if (pick(2) == 0) {
      p->origin.steps.pop_back();
    } else {
      nudge(p->origin.steps[pick(p->origin.steps.size())].stride);
    }
  }
  void level() { any_stage().level = static_cast<FoldLevel>(pick(3)); }
  void map() {
    Generic* g = generic(any_stage());
    if (!g || g->ins.empty()) return;
    ElemAccess& map = g->ins[pick(g->ins.size())];
    const auto by = static_cast<int64_t>(program_.tile.size());
    map.base += pick(2) == 0 ? by : -by;
  }
  void rectangle() {
    TileRect& rect = program_.work.items[pick(program_.work.items.size())].out;
    std::array<uint64_t*, 4> numbers{&rect.row, &rect.col, &rect.rows, &rect.cols};
    nudge(*numbers[pick(4)]);
  }
  void bounds() {
    AccessPattern* p = pattern(any_stage());
    if (p && p->origin.indirect) ++p->origin.indirect->high;
  }
  void operand() {
    Stage& stage = any_stage();
    if (!stage.ins.empty())
      stage.ins[pick(stage.ins.size())] = BufferId{static_cast<uint32_t>(pick(program_.buffers.size()))};
  }

  Program& program_;
  std::mt19937_64 random_;
};

// Faults that a certificate excludes. The others are those of data: an index, a count, an overflow.
bool excluded(evaluate::FaultKind kind, const Certificate& certificate) {
  using evaluate::FaultKind;
  constexpr std::array kExcluded{FaultKind::TileAddress,   FaultKind::StaleRead,   FaultKind::WriteConflict,
                                 FaultKind::PageMissing,   FaultKind::PageOverrun, FaultKind::PageLeft,
                                 FaultKind::UnwrittenRead, FaultKind::WrongVersion};
  if (std::find(kExcluded.begin(), kExcluded.end(), kind) != kExcluded.end()) return true;
  const bool checked = std::any_of(certificate.reads.begin(), certificate.reads.end(),
                                   [](const ReadEvidence& read) { return read.checked_at_run; });
  return kind == FaultKind::PageOffset && !checked;
}

struct Counts {
  int certified = 0;
  int rejected = 0;
  int faulted = 0;  // of the rejected, those that the evaluator stops too
};

void look(const Program& program, uint64_t seed, Counts& counts) {
  const Target target = target_of(program);
  const Verdict verdict = certify(program, target);
  evaluate::Memory memory(program.tile);
  evaluate::testing::fill_inputs(program, memory, seed);
  const Result<evaluate::Run> run = evaluate::evaluate(program, memory);
  if (!verdict.ok()) {
    ++counts.rejected;
    counts.faulted += !run || run->fault ? 1 : 0;
    return;
  }
  ++counts.certified;
  EXPECT_THAT(recheck(program, target, verdict.certificate), ::testing::IsEmpty());
  ASSERT_TRUE(run.ok()) << to_text(run.refusal());
  EXPECT_FALSE(run->fault && excluded(run->fault->kind, verdict.certificate)) << to_text(*run->fault);
}

TEST(Soundness, WhatIsCertifiedDoesNotMisbehave) {
  Counts whole, mutated;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Program program = evaluate::testing::random_program(seed % 3 == 0 ? TileShape{2, 8} : TileShape{4, 4}, seed);
    look(program, seed, whole);
    for (uint64_t round = 0; round < 4; ++round) {
      Program changed = program;
      Mutator(changed, seed * 4 + round).mutate();
      look(changed, seed, mutated);
    }
  }
  EXPECT_GT(whole.certified, 300);
  EXPECT_GT(mutated.certified, 300);
  EXPECT_GT(mutated.rejected, 300);
  EXPECT_GT(mutated.faulted, 150);
}

}  // namespace
}  // namespace tw::spatial
