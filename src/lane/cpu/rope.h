#pragma once

#include <cstdint>

#include "lane/cpu/simd.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu {

// Rotary embedding of `heads` heads over all rows, split-half pairs; values from 2 * half on pass through.
//   y[i] = fma(x[i], c[i], -(x[i+half] * s[i])),  y[i+half] = fma(x[i], s[i], x[i+half] * c[i])
// Head u begins at x + u * x_pitch, becomes unit u of y and belongs to row r = u / per_row. Its table row (0-based) is
// P - 1 + r with P = *position, r without a position; with `position_a_row` it is position[r] - 1 (rows are sequences).
// normed: the head is first (v * rsq(LT(v^2) / width + eps)) * norm_weight, rounded. Runs in place when the units are
// the same. Requires 2 * half <= width. Items: heads. Scratch: a head, where y is not plain f32 in order.
struct RopeArgs {
  const float* x = nullptr;
  const float* cos = nullptr;  // rows of half
  const float* sin = nullptr;
  const int32_t* position = nullptr;   // optional, 1-based
  const float* norm_weight = nullptr;  // optional, with normed
  Store y;
  uint64_t x_pitch = 0;
  uint64_t heads = 0, per_row = 1, width = 0, half = 0;
  float eps = 0;
  bool normed = false;
  bool position_a_row = false;
};
TW_INLINE constexpr uint64_t items(const RopeArgs& a) { return a.heads; }
TW_INLINE constexpr size_t scratch_bytes(const RopeArgs& a) { return a.width * sizeof(float); }

// Several rotations that do not touch each other's arrays. Items: the sides' heads, side after side.
struct RopePartsArgs {
  const RopeArgs* sides = nullptr;
  uint64_t count = 0;
};
TW_INLINE constexpr uint64_t items(const RopePartsArgs& a) {
  uint64_t all = 0;
  for (uint64_t s = 0; s < a.count; ++s) all += items(a.sides[s]);
  return all;
}
TW_INLINE constexpr size_t scratch_bytes(const RopePartsArgs& a) {
  size_t most = 0;
  for (uint64_t s = 0; s < a.count; ++s)
    if (scratch_bytes(a.sides[s]) > most) most = scratch_bytes(a.sides[s]);
  return most;
}

}  // namespace tw::lane::cpu
