#include "spatial/lower/run_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using ::testing::ElementsAre;

std::vector<double> moved(const std::vector<double>& source, const std::vector<MovedRun>& runs) {
  std::vector<double> out;
  for (const MovedRun& run : runs)
    for (uint64_t i = 0; out.size() < run.end; ++i) out.push_back(run.from ? source[*run.from + i] : 0.0);
  return out;
}

// The harness binds the operand and reads the result by name; the op of the case says nothing.
Result<Program> section_of(const testing::OpCase& c, const std::vector<MovedRun>& runs, const Target& target) {
  OpView view{target, {c.operands[0]->tensor}, {.name = "y", .cols = runs.back().end}};
  return run_moves(runs, view);
}

void expect_moved(testing::CaseOperand source, const std::vector<MovedRun>& runs, const Target& target) {
  source.tensor.dtype = source.tensor.integer ? std::nullopt : target.real_element;
  for (double& value : source.values)
    if (!source.tensor.integer) value = round_to(*target.real_element, value);
  const graph::OpSpec any = source.tensor.integer ? graph::OpSpec{graph::IntClamp{}} : graph::OpSpec{graph::Scale{1}};
  const testing::OpCase c{any, {source}};
  const Result<Program> section = section_of(c, runs, target);
  ASSERT_TRUE(section.ok()) << to_text(section.refusal());
  EXPECT_TRUE(section->claim.exact);
  const testing::Outcome outcome = testing::run({*section}, c, target);
  const std::vector<double> want = moved(source.values, runs);
  ASSERT_EQ(outcome.values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const bool same = std::isnan(want[i])
                          ? std::isnan(outcome.values[i])
                          : outcome.values[i] == want[i] && std::signbit(outcome.values[i]) == std::signbit(want[i]);
    EXPECT_TRUE(same) << "element " << i << " is " << outcome.values[i] << ", expected " << want[i];
  }
}

std::vector<MovedRun> random_runs(uint64_t source, uint64_t most, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<MovedRun> runs;
  uint64_t end = 0;
  const uint64_t count = 1 + random() % most;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = 1 + random() % std::min<uint64_t>(source, 9);
    end += length;
    if (random() % 3 == 0) {
      runs.push_back({end, std::nullopt});
    } else {
      runs.push_back({end, random() % (source - length + 1)});
    }
  }
  return runs;
}

TEST(RunMoves, RunsOfAnyLengthFromAnywhere) {
  for (const Target& target : {testing::t4(), testing::t16(), testing::t32(), testing::t1(), testing::tall()})
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(::testing::Message() << target.name << " seed " << seed);
      const uint64_t source = 1 + seed * 7 % 60;
      expect_moved(testing::reals("x", 1, source, seed), random_runs(source, 12, seed), target);
      expect_moved(testing::integers("x", 1, source, seed, -50, 50), random_runs(source, 30, seed + 99), target);
    }
}

// Heads of 6 to heads of a tile of 16 with zeros behind them, and back: more runs a tile than numbers fit one tile
// of 4.
TEST(RunMoves, HeadsAreWidenedAndNarrowed) {
  for (const Target& target : {testing::t16(), testing::t4(), testing::t32()})
    for (const uint64_t head : {1, 3, 6, 15}) {
      std::vector<MovedRun> widen, narrow;
      for (uint64_t h = 0; h < 5; ++h) {
        widen.push_back({h * 16 + head, h * head});
        widen.push_back({(h + 1) * 16, std::nullopt});
        narrow.push_back({(h + 1) * head, h * 16});
      }
      expect_moved(testing::reals("x", 1, 5 * head, head), widen, target);
      expect_moved(testing::reals("x", 1, 80, head), narrow, target);
    }
}

TEST(RunMoves, WhatIsNoNumberStaysInItsRun) {
  testing::CaseOperand source = testing::reals("x", 1, 12, 1);
  source.values[3] = std::nan("");
  source.values[4] = std::numeric_limits<double>::infinity();
  source.values[8] = -0.0;
  expect_moved(source, {{3, 1}, {5, std::nullopt}, {7, 8}, {9, 3}, {14, std::nullopt}}, testing::t4());
}

TEST(RunMoves, ZerosAloneAndOneElement) {
  expect_moved(testing::reals("x", 1, 5, 1), {{9, std::nullopt}}, testing::t4());
  expect_moved(testing::reals("x", 1, 1, 1), {{1, 0}}, testing::t4());
}

TEST(RunMoves, AnItemLoadsTheWindowOfItsTile) {
  const testing::OpCase c{graph::Scale{1}, {testing::reals("x", 1, 400, 1)}};
  const Target target = testing::t4();
  const Result<Program> section = section_of(c, {{4, 398 - 4}, {8, 0}}, target);
  ASSERT_TRUE(section.ok());
  // Two numbers pages and a window of two tiles an item.
  EXPECT_EQ(testing::run({*section}, c, target).tiles_loaded, 2U * (2 + 2));
}

TEST(RunMoves, RunsOfZerosAreJoinedAndEmptyOnesDropped) {
  const std::vector<MovedRun> runs{{0, 5}, {3, std::nullopt}, {3, 7}, {5, std::nullopt}, {8, 1}, {9, std::nullopt}};
  EXPECT_THAT(joined_zero_runs(runs), ElementsAre(MovedRun{5, {}}, MovedRun{8, 1}, MovedRun{9, {}}));
}

TEST(RunMoves, RefusesWhatTheTargetLacks) {
  const testing::OpCase c{graph::Scale{1}, {testing::reals("x", 1, 1000, 1)}};
  const std::vector<MovedRun> runs{{4, 990}, {5, 2}};
  EXPECT_EQ(section_of(c, runs, testing::without_reals()).refusal().kind, RefusalKind::Missing);
  EXPECT_EQ(section_of(c, runs, testing::narrow_integers()).refusal().kind, RefusalKind::Missing);
  EXPECT_EQ(section_of(c, runs, testing::t4_with(64)).refusal().kind, RefusalKind::TooLarge);
}

}  // namespace
}  // namespace tw::spatial::lower
