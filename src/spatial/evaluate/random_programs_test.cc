// The evaluator against the oracle, bit for bit and fault for fault.

#include <gtest/gtest.h>

#include <set>

#include "base/expect_good.h"
#include "spatial/evaluate/evaluate.h"
#include "spatial/evaluate/testing/compare.h"
#include "spatial/evaluate/testing/naive.h"
#include "spatial/evaluate/testing/random_program.h"
#include "spatial/testing.h"

namespace tw::spatial::evaluate {
namespace {

std::string told(const Run& run) { return run.fault ? to_text(*run.fault) : "no fault"; }

// The same in both, and in any order of the items. Answers whether it ran to the end.
bool expect_equal(const Program& program, uint64_t seed) {
  Memory want(program.tile);
  testing::fill_inputs(program, want, seed);
  Memory got = want, reversed = want, shuffled = want;
  const Run oracle = testing::run_naive(program, want);
  const Run run = good(evaluate(program, got));
  EXPECT_EQ(run.fault, oracle.fault) << "seed " << seed << ": " << told(run) << "; expected " << told(oracle);
  if (run.fault || oracle.fault) return false;
  EXPECT_EQ(testing::difference(program, want, got), "") << "seed " << seed;
  EXPECT_FALSE(good(evaluate(program, reversed, {.order = ItemOrder::Reversed})).fault);
  EXPECT_EQ(testing::difference(program, want, reversed), "") << "seed " << seed << ", items reversed";
  EXPECT_FALSE(good(evaluate(program, shuffled, {.order = ItemOrder::Shuffled, .seed = seed})).fault);
  EXPECT_EQ(testing::difference(program, want, shuffled), "") << "seed " << seed << ", items shuffled";
  return true;
}

class RandomPrograms : public ::testing::TestWithParam<TileShape> {};

TEST_P(RandomPrograms, EqualTheOracleBitForBit) {
  const TileShape tile = GetParam();
  const uint64_t programs = tile.size() > 100 ? 150 : 1500;
  uint64_t complete = 0;
  for (uint64_t seed = 0; seed < programs && !HasFailure(); ++seed)
    complete += expect_equal(testing::random_program(tile, seed), seed) ? 1 : 0;
  EXPECT_GE(complete, programs / 2);  // most are no tests of faults
}

// What the random programs reach, by name; a comparison is worth no more than this.
std::set<std::string> features(const Program& program) {
  std::set<std::string> all;
  all.insert(std::string("accumulates ") + std::string(name(program.accumulator)));
  if (program.work.k_trip) all.insert("trip");
  if (program.work.plan.sub_blocks() > 1) all.insert("sub-blocks");
  for (const Stage& stage : program.stages) {
    if (stage.pattern() && stage.pattern()->block_h > 1) all.insert("stacked block");
    const Generic* generic = stage.generic();
    if (!generic) continue;
    const bool integers = computes_integers(program, stage);
    all.insert(integers ? "integer body" : "real body");
    all.insert(std::string("writes ") + std::string(name(program.at(stage.outs[0]).dtype)));
    if (const auto pool = generic->pool()) all.insert("pool " + std::to_string(static_cast<int>(*pool)));
    all.insert("landing " + std::to_string(static_cast<int>(landing(*generic))));
    for (uint32_t i = 0; i < generic->ins.size(); ++i)
      if (const auto& term = generic->ins[i].indirect) all.insert(term->operand == i ? "guard" : "indirect");
    for (const Node& node : generic->body.nodes()) {
      all.insert("node " + std::to_string(node.index()));
      if (const auto* select = std::get_if<SelectNode>(&node))
        all.insert(std::string(select->cond.by_operand ? "operand bound" : "constant bound") +
                   std::to_string(static_cast<int>(select->cond.axis)));
    }
  }
  return all;
}

TEST(RandomProgramsThemselves, ReachEveryPartOfTheIr) {
  std::set<std::string> complete, faults;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Program program = testing::random_program({4, 4}, seed);
    Memory memory(program.tile);
    testing::fill_inputs(program, memory, seed);
    const auto run = good(evaluate(program, memory));
    if (run.fault)
      faults.emplace(name(run.fault->kind));
    else
      complete.merge(features(program));
  }
  for (const char* want : {"trip",
                           "sub-blocks",
                           "stacked block",
                           "integer body",
                           "real body",
                           "guard",
                           "indirect",
                           "pool 0",
                           "pool 1",
                           "pool 2",
                           "landing 0",
                           "landing 1",
                           "landing 2",
                           "node 0",
                           "node 1",
                           "node 2",
                           "node 3",
                           "node 4",
                           "node 5",
                           "node 6",
                           "operand bound0",
                           "operand bound1",
                           "operand bound2",
                           "constant bound0",
                           "constant bound1",
                           "constant bound2",
                           "accumulates f32",
                           "accumulates bf16",
                           "accumulates f16",
                           "accumulates fx16",
                           "accumulates fx32",
                           "writes i8",
                           "writes i16",
                           "writes i32",
                           "writes i64",
                           "writes fx16",
                           "writes fx32",
                           "writes bf16",
                           "writes f16",
                           "writes f32"})
    EXPECT_TRUE(complete.contains(want)) << want;
  for (const FaultKind kind : {FaultKind::IndexRange, FaultKind::PageOffset, FaultKind::TripRange, FaultKind::Overflow,
                               FaultKind::DivisionByZero})
    EXPECT_TRUE(faults.contains(std::string(name(kind)))) << name(kind);
}

INSTANTIATE_TEST_SUITE_P(Tiles, RandomPrograms,
                         ::testing::Values(TileShape{1, 1}, TileShape{4, 4}, TileShape{8, 4}, TileShape{32, 32}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.rows) + "x" + std::to_string(shape.param.cols);
                         });

TEST(ReadyPrograms, EqualTheOracleBitForBit) {
  for (const char* name : {"toy_square", "tensix"}) {
    const Target target = spatial::testing::shipped_target(name);
    const std::vector<Result<Program>> programs{
        spatial::testing::flat_add(target, 7), spatial::testing::row_sum_fold(target, 5, false),
        spatial::testing::row_sum_fold(target, 5, true), spatial::testing::tile_gather(target, 9),
        spatial::testing::streamed_product(target, 2, 3, 4)};
    for (const Result<Program>& program : programs) {
      ASSERT_TRUE(program.ok()) << to_text(program.refusal());
      for (uint64_t seed = 0; seed < 5; ++seed) expect_equal(*program, seed);
    }
  }
}

}  // namespace
}  // namespace tw::spatial::evaluate
