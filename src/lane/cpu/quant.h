#pragma once

// Quantized activations (docs/numerics.md): per aligned block of 32 values of a row one f32 scale and one or two int8
// words a value. A row is padded to whole blocks; padding is zero.
//   one word:  x ~ scale * wide, wide = high
//   two words: x ~ scale * wide, wide = 256 * high + low (|wide| <= 32512)

#include <cstddef>
#include <cstdint>

#include "lane/cpu/simd.h"
#include "lane/types.h"

namespace tw::lane::cpu {

// Arrays of n values (n a multiple of 32) and n / 32 blocks, each 64-byte aligned. low and sum_low only with two words,
// else null.
struct QuantView {
  int8_t* high = nullptr;
  int8_t* low = nullptr;
  int16_t* wide = nullptr;
  float* scale = nullptr;
  int32_t* sum_high = nullptr;  // sum over the block of high
  int32_t* sum_half = nullptr;  // sum over the block's first 16 values of wide
  int32_t* sum_low = nullptr;
};

TW_INLINE constexpr uint64_t quant_padded(uint64_t cols) {
  return (cols + kQuantBlock - 1) / kQuantBlock * kQuantBlock;
}

// Bytes of the quantized form of n values, a multiple of 64. Requires n % 32 == 0, words 1 or 2.
TW_INLINE constexpr size_t quant_bytes(uint64_t n, int words) {
  const auto aligned = [](uint64_t bytes) { return (bytes + 63) / 64 * 64; };
  const uint64_t blocks = aligned(n / kQuantBlock * 4);
  return 2 * blocks + (aligned(n) + blocks) * static_cast<uint64_t>(words) + aligned(2 * n);
}

// The pieces within `storage`, which is 64-byte aligned and holds quant_bytes(n, words).
TW_INLINE inline QuantView quant_view(std::byte* storage, uint64_t n, int words) {
  QuantView view;
  std::byte* at = storage;
  const auto take = [&at]<class T>(T*& pointer, uint64_t count) {
    pointer = reinterpret_cast<T*>(at);
    at += (count * sizeof(T) + 63) / 64 * 64;
  };
  take(view.scale, n / kQuantBlock);
  take(view.high, n);
  take(view.sum_high, n / kQuantBlock);
  take(view.sum_half, n / kQuantBlock);
  take(view.wide, n);
  if (words == 2) {
    take(view.low, n);
    take(view.sum_low, n / kQuantBlock);
  }
  return view;
}

// The same form from block `block` on.
TW_INLINE inline QuantView quant_from(QuantView view, uint64_t block) {
  const uint64_t value = block * kQuantBlock;
  view.high += value;
  view.scale += block;
  view.sum_high += block;
  view.sum_half += block;
  view.wide += value;
  if (view.low != nullptr) {
    view.low += value;
    view.sum_low += block;
  }
  return view;
}

// Quantizes rows x cols of x (row r at r * pitch) into `to`, row r at value r * quant_padded(cols).
//   A = max|x| of a block; A < 2^-100: scale and words 0; NaN in a block: scale NaN.
//   one word:  scale = A / 127,   high = rint(x * (127 / A))
//   two words: scale = A / 32512, wide = rint(x * (32512 / A)), high = (wide + 128) >> 8, low = wide - 256 * high
// Items: blocks of 32, row by row.
struct QuantArgs {
  const float* x = nullptr;
  QuantView to;
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint64_t pitch = 0;
  int words = 1;
};
TW_INLINE constexpr uint64_t items(const QuantArgs& a) { return a.rows * (quant_padded(a.cols) / kQuantBlock); }

}  // namespace tw::lane::cpu
