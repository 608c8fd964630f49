#pragma once

// Elementwise arithmetic on f32 arrays. All may run in place (out == an input of the same shape). A result in a Store
// is its unit 0, an array that may be plain, quantized, or both.

#include <cstdint>

#include "graph/op.h"
#include "lane/cpu/simd.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu {

// Elements of a row that one item covers.
inline constexpr uint64_t kElementBlock = 1024;
TW_INLINE constexpr uint64_t element_blocks(uint64_t cols) { return (cols + kElementBlock - 1) / kElementBlock; }

// out[i] = a[i] (op) act(b[...]), act rounded first. row = 0: b[i]. row = w: n / w rows of w values and b[i mod w], or
// with `scalar` b[i / w], or with b_pitch row r of b at r * b_pitch.  Min and Max: a < b ? a : b, a > b ? a : b.
// Quantized: n, and with `row` that, are whole blocks of 32. Items: blocks of kElementBlock, row by row.
struct BinaryArgs {
  const float* a = nullptr;
  const float* b = nullptr;
  Store out;
  uint64_t n = 0, row = 0;
  uint64_t b_pitch = 0;
  bool scalar = false;
  bool gated = false;  // act is applied
  graph::ActivationKind act = graph::ActivationKind::Silu;
  graph::Arithmetic op = graph::Arithmetic::Add;
};
TW_INLINE constexpr uint64_t items(const BinaryArgs& a) {
  return a.row == 0 ? element_blocks(a.n) : a.n / a.row * element_blocks(a.row);
}

// y = x * factor. Items: blocks of kElementBlock.
struct ScaleArgs {
  const float* x = nullptr;
  float* y = nullptr;
  uint64_t n = 0;
  float factor = 1;
};
TW_INLINE constexpr uint64_t items(const ScaleArgs& a) { return element_blocks(a.n); }

// out = silu(g) * u. Quantized: n is whole blocks of 32. Items: blocks of kElementBlock.
struct SwiGluArgs {
  const float* g = nullptr;
  const float* u = nullptr;
  Store out;
  uint64_t n = 0;
};
TW_INLINE constexpr uint64_t items(const SwiGluArgs& a) { return element_blocks(a.n); }

// y = act(x), or with cap > 0 softcap(x, cap). Items: blocks of kElementBlock.
struct UnaryArgs {
  const float* x = nullptr;
  float* y = nullptr;
  uint64_t n = 0;
  float cap = 0;
  graph::ActivationKind act = graph::ActivationKind::Silu;
};
TW_INLINE constexpr uint64_t items(const UnaryArgs& a) { return element_blocks(a.n); }

// decay[i] = exp(rate * softplus(x[i] + bias)), bias and rate by i mod heads; beta[i] = sigmoid(b[i]) when beta is
// wanted. Items: rows of `heads`.
struct GatesArgs {
  const float* b = nullptr;  // with beta
  const float* x = nullptr;
  const float* bias = nullptr;
  const float* rate = nullptr;
  float* beta = nullptr;  // optional
  float* decay = nullptr;
  uint64_t rows = 0, heads = 0;
};
TW_INLINE constexpr uint64_t items(const GatesArgs& a) { return a.rows; }

}  // namespace tw::lane::cpu
