#include "gguf/codebooks.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tw::gguf {
namespace {

template <class GridType>
void expect_grid(const GridType& grid, const std::set<int>& levels) {
  std::set<int> seen;
  for (size_t e = 0; e < grid.size(); ++e) {
    seen.insert(grid[e].begin(), grid[e].end());
    // The entries ascend, the last value being the most significant, so they are distinct.
    if (e > 0) {
      const std::vector<int> before(grid[e - 1].rbegin(), grid[e - 1].rend());
      const std::vector<int> entry(grid[e].rbegin(), grid[e].rend());
      EXPECT_LT(before, entry) << e;
    }
  }
  EXPECT_EQ(seen, levels);
}

TEST(Codebooks, GridsHoldDistinctEntriesOfTheirLevels) {
  expect_grid(kIq2XxsGrid, {8, 25, 43});
  expect_grid(kIq2XsGrid, {8, 25, 43});
  expect_grid(kIq2SGrid, {8, 25, 43});
  expect_grid(kIq3XxsGrid, {4, 12, 20, 28, 36, 44, 52, 62});
  expect_grid(kIq3SGrid, {1, 3, 5, 7, 9, 11, 13, 15});
  expect_grid(kIq1Grid, {-1, 0, 1});
}

TEST(Codebooks, SignCodesExpandToAnEvenNumberOfSigns) {
  std::set<int> seen;
  for (uint32_t code = 0; code < 128; ++code) {
    const uint8_t signs = expand_signs(code);
    EXPECT_EQ(signs & 127u, code);
    EXPECT_EQ(__builtin_popcount(signs) % 2, 0);
    EXPECT_EQ(expand_signs(code | 0xffffff80u), signs) << "bits above the seventh are not part of the code";
  }
}

TEST(Codebooks, FloatLevelsAreTwiceE2M1) {
  for (uint32_t code = 0; code < 16; ++code) {
    const int exponent = static_cast<int>(code >> 1 & 3);
    const double mantissa = 0.5 * (code & 1);
    double value = exponent == 0 ? mantissa : (1.0 + mantissa) * (1 << (exponent - 1));
    if (code & 8) value = -value;
    EXPECT_EQ(kFp4Levels[code], 2.0 * value) << code;
  }
}

}  // namespace
}  // namespace tw::gguf
