#pragma once

// Norms and softmax of rows. Arrays are f32, no alignment is needed, pitches count elements.

#include <cstdint>

#include "graph/op.h"
#include "lane/cpu/simd.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu {

// Row by row: A' = pre ? (A * rsq(mean(A^2) + pre_eps)) * pre_weight : A;  V = add ? X + A' : X, written to `sum`;
//   Rms:   Y = (V * rsq(LT(V^2) / cols + eps)) * weight + bias
//   Layer: D = V - LT(V) / cols;  Y = (D * rsq(LT(D^2) / cols + eps)) * weight + bias
// An absent weight or bias is left out, not 1 or 0. add, sum: dense rows of cols. In place: out or sum may be x or add
// (the same rows at the same pitch), not each other. Results: a unit a row. `quantized` is where the quantized form
// lies when the plain one lands elsewhere than in the result's own buffer. Items: rows. Scratch: a row, where the
// result is not plain f32 in order.
struct NormArgs {
  const float* x = nullptr;
  uint64_t x_pitch = 0;
  const float* add = nullptr;         // optional
  const float* pre_weight = nullptr;  // optional, with pre
  const float* weight = nullptr;      // optional
  const float* bias = nullptr;        // optional
  float* sum = nullptr;               // optional
  Store out;
  Store quantized;  // optional
  uint64_t rows = 0, cols = 0;
  float eps = 0, pre_eps = 0;
  bool pre = false;  // norm the added operand first
  graph::NormKind kind = graph::NormKind::Rms;
};
TW_INLINE constexpr uint64_t items(const NormArgs& a) { return a.rows; }
TW_INLINE constexpr size_t scratch_bytes(const NormArgs& a) { return a.cols * sizeof(float); }

// y = x * rsq(LT(x^2) + eps), dense rows. In place allowed. Items: rows.
struct L2NormArgs {
  const float* x = nullptr;
  float* y = nullptr;
  uint64_t rows = 0, cols = 0;
  float eps = 0;
};
TW_INLINE constexpr uint64_t items(const L2NormArgs& a) { return a.rows; }

// m = MAX x (and the sink), w = exp(x - m), Z = LT(w) (+ exp(sink - m)), y = w / Z. Dense rows, in place allowed.
// Items: rows.
struct SoftmaxArgs {
  const float* x = nullptr;
  const float* sinks = nullptr;  // optional: one for all rows, or with sink_a_row one each
  float* y = nullptr;
  uint64_t rows = 0, cols = 0;
  bool sink_a_row = false;
};
TW_INLINE constexpr uint64_t items(const SoftmaxArgs& a) { return a.rows; }

}  // namespace tw::lane::cpu
