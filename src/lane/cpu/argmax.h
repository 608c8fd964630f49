#pragma once

#include <cstdint>

#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// The best of a piece: the first item (1-based in its row) greater than all before it in the piece, 0 when none is
// greater than -infinity.
struct Best {
  float value = 0;
  int32_t item = 0;
};

// out[r] = 1 + index of the first maximum by a strict "greater" scan from item 1: a NaN never replaces anything and a
// NaN in the first place is never replaced. Two kernels with a barrier between: argmax_scan fills `best`, one a row
// and piece of kArgMaxPiece items, argmax_merge takes the pieces in order.
// With `token` the step moves on: rows / sequences rows belong to a sequence, the last one's pick becomes token[s] and
// position[s] grows by `consumed`, the rows of the step.
// Items: rows * pieces; rows.
struct ArgMaxArgs {
  const float* x = nullptr;
  Best* best = nullptr;
  int32_t* out = nullptr;
  int32_t* token = nullptr;     // optional
  int32_t* position = nullptr;  // with token
  int32_t consumed = 0;
  uint64_t sequences = 1;
  uint64_t rows = 1, n = 0;
};
inline constexpr uint64_t kArgMaxPiece = 8192;
TW_INLINE constexpr uint64_t argmax_pieces(uint64_t n) { return (n + kArgMaxPiece - 1) / kArgMaxPiece; }
TW_INLINE constexpr uint64_t argmax_scan_items(const ArgMaxArgs& a) { return a.rows * argmax_pieces(a.n); }
TW_INLINE constexpr uint64_t argmax_merge_items(const ArgMaxArgs& a) { return a.rows; }

}  // namespace tw::lane::cpu
