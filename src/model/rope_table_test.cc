#include "model/rope_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace tw::model {
namespace {

using testing::ElementsAre;

TEST(RopeTable, TheFirstPositionTurnsNothing) {
  const RopeTables tables = rope_tables({.width = 8}, 3);
  for (size_t pair = 0; pair < 4; ++pair) {
    EXPECT_EQ(tables.cos[pair], 1.0F);
    EXPECT_EQ(tables.sin[pair], 0.0F);
  }
}

TEST(RopeTable, ThePairsTurnByPowersOfTheBase) {
  const RopeTables tables = rope_tables({.width = 8, .base = 10000}, 3);
  for (uint32_t pair = 0; pair < 4; ++pair) {
    EXPECT_FLOAT_EQ(tables.cos[8 + pair], static_cast<float>(std::cos(2 * std::pow(10, -static_cast<int>(pair)))));
    EXPECT_FLOAT_EQ(tables.sin[8 + pair], static_cast<float>(std::sin(2 * std::pow(10, -static_cast<int>(pair)))));
  }
}

TEST(RopeTable, LinearScalingSlowsEveryPair) {
  const RopeSpec spec{.width = 8, .scaling = RopeSpec::Scaling::Linear, .factor = 4};
  for (uint32_t pair = 0; pair < 4; ++pair) EXPECT_DOUBLE_EQ(rope_frequency(spec, pair), std::pow(0.1, pair) / 4);
  EXPECT_EQ(rope_magnitude(spec), 1);
}

TEST(RopeTable, DivisorsDivide) {
  const RopeSpec spec{.width = 4, .divisors = {1, 8}};
  EXPECT_DOUBLE_EQ(rope_frequency(spec, 0), 1);
  EXPECT_DOUBLE_EQ(rope_frequency(spec, 1), 0.01 / 8);
}

// Width 128, base 10000, 4096 positions stretched by 16: the ramp runs from pair 20 to pair 46, as in the published
// models of that recipe.
TEST(RopeTable, YarnKeepsFastPairsAndStretchesSlowOnes) {
  const RopeSpec spec{
      .width = 128, .base = 10000, .scaling = RopeSpec::Scaling::Yarn, .factor = 16, .original_context = 4096};
  const auto plain = [](uint32_t pair) { return std::pow(10000.0, -2.0 * pair / 128); };
  EXPECT_DOUBLE_EQ(rope_frequency(spec, 0), 1);
  EXPECT_DOUBLE_EQ(rope_frequency(spec, 20), plain(20));
  EXPECT_DOUBLE_EQ(rope_frequency(spec, 33), plain(33) * (0.5 + 0.5 / 16));
  EXPECT_DOUBLE_EQ(rope_frequency(spec, 46), plain(46) / 16);
  EXPECT_DOUBLE_EQ(rope_frequency(spec, 63), plain(63) / 16);
  EXPECT_DOUBLE_EQ(rope_magnitude(spec), 1 + 0.1 * std::log(16.0));
}

TEST(RopeTable, YarnMagnitudes) {
  RopeSpec spec{.width = 64, .scaling = RopeSpec::Scaling::Yarn, .factor = 40, .original_context = 4096};
  spec.log_multiplier = 1;
  EXPECT_DOUBLE_EQ(rope_magnitude(spec), 1);
  spec.log_multiplier = 0.5;
  EXPECT_DOUBLE_EQ(rope_magnitude(spec), (1 + 0.1 * std::log(40.0)) / (1 + 0.05 * std::log(40.0)));
  spec.attention_factor = 2;
  spec.log_multiplier = 0;
  EXPECT_DOUBLE_EQ(rope_magnitude(spec), 2 * (1 + 0.1 * std::log(40.0)));
}

TEST(RopeTable, InterleavedSectionsLeavePairsOfTheFourthAxisStill) {
  EXPECT_THAT(still_pairs({11, 11, 10, 0}, 32), testing::Each(false));
  EXPECT_THAT(still_pairs({4, 2, 2, 0}, 8), ElementsAre(false, false, false, false, false, false, false, true));
  EXPECT_THAT(still_pairs({2, 0, 0, 2}, 4), ElementsAre(false, true, true, false));
}

TEST(RopeTable, AStillPairKeepsItsValues) {
  const RopeTables tables = rope_tables({.width = 4, .still = {false, true}}, 100);
  EXPECT_EQ(tables.cos[99 * 2 + 1], 1.0F);
  EXPECT_EQ(tables.sin[99 * 2 + 1], 0.0F);
  EXPECT_NE(tables.cos[99 * 2], 1.0F);
}

// The bits of a table are part of the logits' bits, so they are pinned.
TEST(RopeTable, TheBitsArePinned) {
  const RopeTables tables = rope_tables({.width = 128, .base = 1e6}, 512);
  uint64_t hash = 0xcbf29ce484222325U;
  for (const std::vector<float>* table : {&tables.cos, &tables.sin})
    for (const float value : *table) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3U;
    }
  EXPECT_EQ(hash, 130658459638280682U);
}

TEST(Temperature, GrowsByTheLogarithmOfWholeRuns) {
  const RopeTables tables = temperature_tables({.pairs = 2, .scale = 0.1, .run = 4}, 12);
  ASSERT_EQ(tables.cos.size(), 24U);
  EXPECT_EQ(tables.cos[2 * 2], 1.0F);
  EXPECT_FLOAT_EQ(tables.cos[2 * 3], static_cast<float>(1 + 0.1 * std::log(2.0)));
  EXPECT_FLOAT_EQ(tables.cos[2 * 11 + 1], static_cast<float>(1 + 0.1 * std::log(4.0)));
  for (const float value : tables.sin) EXPECT_EQ(value, 0.0F);
}

}  // namespace
}  // namespace tw::model
