#include "model/pair_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::model {
namespace {

using testing::ElementsAre;

TEST(PairOrder, WithoutARotatedRunEveryRowStays) {
  EXPECT_THAT(split_half_order({.first = 3, .heads = 2, .width = 2}), ElementsAre(3, 4, 5, 6));
}

TEST(PairOrder, AdjacentPairsBecomeSplitHalvesInEveryHead) {
  EXPECT_THAT(split_half_order({.heads = 2, .width = 6, .rotated = 4}),
              ElementsAre(0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11));
}

TEST(PairOrder, TheRotatedRunMayBeginInsideAHead) {
  EXPECT_THAT(split_half_order({.first = 10, .heads = 2, .width = 5, .from = 1, .rotated = 4}),
              ElementsAre(10, 11, 13, 12, 14, 15, 16, 18, 17, 19));
}

}  // namespace
}  // namespace tw::model
