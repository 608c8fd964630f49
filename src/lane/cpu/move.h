#pragma once

// Copies, gathers and the layouts of the caches. Wide values are f32; 16-bit storage is widened exactly when read and
// rounded to nearest even when written.

#include <cstddef>
#include <cstdint>

#include "lane/cpu/simd.h"
#include "lane/cpu/slot_table.h"
#include "lane/types.h"

namespace tw::lane::cpu {

// Element type of a stored array: F32, F16 or BF16 (I32 is refused by the executor).

// out[r] = scale * row index[r] of the table (1-based; row `fixed` of it without an index). A scale of 1 multiplies
// nothing. Requires every index within the table: the runtime checks tokens. Items: rows.
struct GatherArgs {
  const void* table = nullptr;
  Dtype type = Dtype::F32;
  const int32_t* index = nullptr;
  uint32_t fixed = 0;
  float* out = nullptr;
  uint64_t rows = 0, cols = 0;
  float scale = 1;
};
TW_INLINE constexpr uint64_t items(const GatherArgs& a) { return a.rows; }

// Units of `width` values: unit u goes from x + x_offset + u * x_pitch to y + y_offset + u * y_pitch (elements of the
// two types). Slices are this. Must not overlap. Items: units.
struct CopyArgs {
  const void* x = nullptr;
  void* y = nullptr;
  Dtype x_type = Dtype::F32, y_type = Dtype::F32;
  uint64_t x_offset = 0, x_pitch = 0, y_offset = 0, y_pitch = 0;
  uint64_t units = 0, width = 0;
};
TW_INLINE constexpr uint64_t items(const CopyArgs& a) { return a.units; }

// y[c][r] = x[r][c], f32, not in place. Items: columns of x.
struct TransposeArgs {
  const float* x = nullptr;
  float* y = nullptr;
  uint64_t rows = 0, cols = 0;
};
TW_INLINE constexpr uint64_t items(const TransposeArgs& a) { return a.cols; }

// How keys or values of key/value head g at position j (0-based) lie.
//   Rows:    element e at j * position_stride + g * head_stride + e
//   Blocked: (keys) [head][block of 16 positions][element][16], so that a lane is a position
// A sequence's cache takes sequence_stride elements and begins at cache_begin.
struct CacheView {
  const void* data = nullptr;
  Dtype type = Dtype::F32;  // F32, F16 or BF16
  bool blocked = false;
  uint64_t position_stride = 0, head_stride = 0;
  uint64_t sequence_stride = 0;
  SlotTable table;
};
TW_INLINE constexpr uint64_t cache_begin(const CacheView& view, uint64_t sequence) {
  return sequence_begin(view.table, sequence, view.sequence_stride);
}

inline constexpr uint64_t kPositionBlock = 16;
TW_INLINE constexpr uint64_t padded_positions(uint64_t length) {
  return (length + kPositionBlock - 1) / kPositionBlock * kPositionBlock;
}
// Elements of one sequence's cache in the lane's own layouts, blocked keys (`width` = hd) or values (vd).
TW_INLINE constexpr uint64_t cache_elements(uint64_t length, uint64_t kv_heads, uint64_t width) {
  return padded_positions(length) * kv_heads * width;
}
// The lane's own cache layouts. Keys: blocked. Values: [head][position][vd].
TW_INLINE constexpr CacheView key_cache(const void* data, Dtype type, uint64_t length, uint64_t kv_heads, uint64_t hd) {
  return {data, type, true, 0, padded_positions(length) * hd, cache_elements(length, kv_heads, hd), {}};
}
TW_INLINE constexpr CacheView value_cache(const void* data, Dtype type, uint64_t length, uint64_t kv_heads,
                                          uint64_t vd) {
  return {data, type, false, vd, padded_positions(length) * vd, cache_elements(length, kv_heads, vd), {}};
}
// Row-major keys or values: len x kv_heads * width.
TW_INLINE constexpr CacheView cache_rows(const void* data, Dtype type, uint64_t length, uint64_t kv_heads,
                                         uint64_t width) {
  return {data, type, false, kv_heads * width, width, length * kv_heads * width, {}};
}

// Rows of kv_heads * width f32 values into a cache: row r of sequence s, at src + (s * rows + r) * kv_heads * width,
// becomes position position[s] - 1 + r (position 1-based; `fixed` without one).
// Items: sequences * rows * kv_heads.
struct CacheWriteArgs {
  const float* src = nullptr;
  CacheView to;  // `data` is written
  const int32_t* position = nullptr;
  uint32_t fixed = 1;
  uint64_t sequences = 1, rows = 1, kv_heads = 1, width = 0;
};
TW_INLINE constexpr uint64_t items(const CacheWriteArgs& a) { return a.sequences * a.rows * a.kv_heads; }

}  // namespace tw::lane::cpu
