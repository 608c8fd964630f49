#include "plan/span_set.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace tw::plan {
namespace {

TEST(SpanSet, SpansThatTouchDoNotMeet) {
  SpanSet set;
  set.insert(4, 8);
  EXPECT_FALSE(set.meets(0, 4));
  EXPECT_FALSE(set.meets(8, 12));
  EXPECT_TRUE(set.meets(0, 5));
  EXPECT_TRUE(set.meets(7, 8));
  EXPECT_TRUE(set.meets(0, 100));
}

TEST(SpanSet, AnEmptySpanMeetsOnlyWhatGoesOnOnBothSidesOfIt) {
  SpanSet set;
  set.insert(4, 8);
  set.insert(8, 12);
  EXPECT_TRUE(set.meets(5, 5));
  EXPECT_FALSE(set.meets(4, 4));
  EXPECT_FALSE(set.meets(8, 8)) << "two spans that touch are still two";
  set.insert(7, 9);
  EXPECT_TRUE(set.meets(8, 8));

  SpanSet empty;
  empty.insert(6, 6);
  EXPECT_FALSE(empty.meets(6, 6));
  EXPECT_FALSE(empty.meets(6, 9));
  EXPECT_FALSE(empty.meets(2, 6));
  EXPECT_TRUE(empty.meets(5, 7));
}

TEST(SpanSet, AgreesWithAListOfSpans) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 rng(seed);
    const auto draw = [&](uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most)(rng); };
    const uint64_t size = 4 + draw(60);
    SpanSet set;
    std::vector<std::pair<uint64_t, uint64_t>> list;
    for (int step = 0; step < 60; ++step) {
      const uint64_t from = draw(size), to = from + (draw(3) == 0 ? 0 : draw(size / 4));
      bool meets = false;
      for (const auto& [begin, end] : list) meets = meets || (begin < to && from < end);
      ASSERT_EQ(set.meets(from, to), meets)
          << "seed " << seed << ", step " << step << ": [" << from << ", " << to << ")";
      if (draw(2) != 0) continue;
      set.insert(from, to);
      list.emplace_back(from, to);
    }
  }
}

}  // namespace
}  // namespace tw::plan
