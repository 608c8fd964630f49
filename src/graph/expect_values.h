#pragma once

// For tests of the evaluator: values are those expected, each within 1e-12 of the larger of its size and 1.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/result.h"

namespace tw::graph::testing {

inline void expect_values(const Result<std::vector<double>>& found, const std::vector<double>& expected) {
  ASSERT_TRUE(found.ok()) << to_text(found.refusal());
  ASSERT_EQ(found->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR((*found)[i], expected[i], 1e-12 * std::max(1.0, std::abs(expected[i]))) << "item " << i;
}

inline double sigma(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace tw::graph::testing
