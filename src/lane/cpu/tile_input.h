#pragma once

// The activation as the tiles of a quantized product read it.

#include "lane/cpu/pack_layout.h"
#include "lane/cpu/quant.h"

namespace tw::lane::cpu {

// Rows of a quantized activation from some block on. Row r lies `pitch` values (pitch / 32 blocks) after row r - 1.
// half_sums: per block the sum over its first 16 values.
struct TileInput {
  const int8_t* high;
  const int16_t* wide;
  const float* scale;
  const int32_t* sum_high;
  const int32_t* sum_low;
  const int32_t* half_sums;
  uint64_t pitch;

  [[gnu::always_inline]] inline TileInput at(uint64_t row, uint64_t block) const {
    const uint64_t blocks = row * (pitch / kBlock) + block;
    const uint64_t values = blocks * kBlock;
    return {high + values,      wide + values, scale + blocks, sum_high + blocks, sum_low ? sum_low + blocks : nullptr,
            half_sums + blocks, pitch};
  }
  // The sum of the integers of block `at`.
  template <int kWords>
  [[gnu::always_inline]] inline int32_t sum(uint64_t at) const {
    if constexpr (kWords == 2) return 256 * sum_high[at] + sum_low[at];
    return sum_high[at];
  }
};

[[gnu::always_inline]] inline int32_t load_word(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

[[gnu::always_inline]] inline TileInput tile_input(const QuantView& q, uint64_t k) {
  return {q.high, q.wide, q.scale, q.sum_high, q.sum_low, q.sum_half, k};
}

}  // namespace tw::lane::cpu
