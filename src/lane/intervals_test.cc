#include "lane/intervals.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tw::lane {
namespace {

TEST(Intervals, AgreeWithASetOfNumbers) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Intervals set;
    std::vector<bool> plain(64, false);
    for (int step = 0; step < 40; ++step) {
      const uint64_t from = random() % 64;
      const uint64_t to = from + random() % (65 - from);
      bool all = true, some = false;
      for (uint64_t i = from; i < to; ++i) {
        all = all && plain[i];
        some = some || plain[i];
      }
      ASSERT_EQ(set.covers(from, to), all) << "seed " << seed << " [" << from << ", " << to << ")";
      ASSERT_EQ(set.meets(from, to), some) << "seed " << seed << " [" << from << ", " << to << ")";
      if (random() % 2 == 0) {
        set.insert(from, to);
        for (uint64_t i = from; i < to; ++i) plain[i] = true;
      }
    }
  }
}

TEST(Intervals, AnEmptyIntervalIsCoveredAndMeetsNothing) {
  Intervals set;
  set.insert(0, 10);
  EXPECT_TRUE(set.covers(20, 20));
  EXPECT_FALSE(set.meets(5, 5));
}

}  // namespace
}  // namespace tw::lane
