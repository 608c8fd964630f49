#pragma once

#include <cstdint>

#include "lane/cpu/simd.h"
#include "lane/cpu/slot_table.h"

namespace tw::lane::cpu {

// Depthwise causal convolution over a carried ring. E = the ring's rows, then x's; for each row r and channel c
//   a = 0; a = fma(E[r + 1 + t][c], w[t][c], a) for t ascending; with silu a = silu(a);
//   with l2_width each run of l2_width channels: a * rsq(LT(a^2) + l2_eps)
// ring' = the last `taps` rows of E. Sequences lie back to back in x and y, in ring by the table; w is shared. x, y:
// rows of chan; y may be x. Requires 1 <= taps <= kMaxConvTaps, chan % l2_width == 0.
// Items: sequences * blocks of channels (a block is one run of l2_width, or 64 channels).
struct ConvArgs {
  const float* x = nullptr;
  const float* w = nullptr;  // taps x chan
  float* ring = nullptr;     // taps x chan
  float* y = nullptr;
  uint64_t sequences = 1, rows = 1, chan = 0, taps = 0;
  uint64_t l2_width = 0;  // 0: none
  float l2_eps = 0;
  bool silu = false;
  SlotTable rings;
};
inline constexpr uint64_t kMaxConvTaps = 16;
TW_INLINE constexpr uint64_t conv_block(const ConvArgs& a) { return a.l2_width != 0 ? a.l2_width : 64; }
TW_INLINE constexpr uint64_t items(const ConvArgs& a) {
  return a.sequences * ((a.chan + conv_block(a) - 1) / conv_block(a));
}

// Several convolutions that do not touch each other's arrays. Items: the parts' items, part after part.
struct ConvPartsArgs {
  const ConvArgs* parts = nullptr;
  uint64_t count = 0;
};
TW_INLINE constexpr uint64_t items(const ConvPartsArgs& a) {
  uint64_t all = 0;
  for (uint64_t p = 0; p < a.count; ++p) all += items(a.parts[p]);
  return all;
}

}  // namespace tw::lane::cpu
