#pragma once

#include <cstdint>

#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// Rotary embedding of `heads` heads over all rows, split-half pairs; values from 2 * half on pass through.
//   y[i] = fma(x[i], c[i], -(x[i+half] * s[i])),  y[i+half] = fma(x[i], s[i], x[i+half] * c[i])
// Head u begins at x + u * x_pitch and y + u * y_pitch and belongs to row r = u / per_row. Its table row (0-based) is
// P - 1 + r with P = *position, r without a position; with `position_a_row` it is position[r] - 1 (rows are sequences).
// normed: the head is first (v * rsq(LT(v^2) / width + eps)) * norm_weight, rounded. Runs in place when the pitches are
// equal. Requires 2 * half <= width. Items: heads.
struct RopeArgs {
  const float* x = nullptr;
  const float* cos = nullptr;  // rows of half
  const float* sin = nullptr;
  const int32_t* position = nullptr;   // optional, 1-based
  const float* norm_weight = nullptr;  // optional, with normed
  float* y = nullptr;
  uint64_t x_pitch = 0, y_pitch = 0;
  uint64_t heads = 0, per_row = 1, width = 0, half = 0;
  float eps = 0;
  bool normed = false;
  bool position_a_row = false;
};
TW_INLINE constexpr uint64_t items(const RopeArgs& a) { return a.heads; }

}  // namespace tw::lane::cpu
