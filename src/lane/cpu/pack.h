#pragma once

// Weights in the lane's own order: how many bytes they take, and the copying itself. What the bytes mean is in
// pack_layout.h; which format gets which layout is the table in pack.cc.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gguf/format.h"
#include "graph/constants.h"
#include "lane/cpu/pack_layout.h"

namespace tw::lane::cpu {

// One row of the table: adding a weight format is adding a row.
struct WeightFormat {
  gguf::Format format;
  Layout layout;
};
std::span<const WeightFormat> weight_formats();
Layout layout_of(gguf::Format format);  // Layout::None for a format that weights cannot have
bool is_weight_format(gguf::Format format);

// The packed form of a stack of matrices, its data to be set. Requires a weight format and k a whole number of its
// blocks.
Packed describe(gguf::Format format, uint64_t n, uint64_t k, uint64_t groups = 1);
// The form in which per-head products read their weights: a floating-point format in its own type, a quantized one as
// f32, each value rounded once.
Packed describe_heads(gguf::Format format, uint64_t heads, uint64_t n, uint64_t k);
uint64_t packed_bytes(gguf::Format format, uint64_t n, uint64_t k, uint64_t groups = 1);

// Packs panels [begin, end) of `shape` to `out` (the whole matrix's bytes, aligned to kPackAlign). Ranges are
// independent. pack: stored row g * n + o of `rows` is output o of group g. pack_input_rows: stored row g * k + t is
// input t of group g and holds its n outputs (requires shape.layout == F32).
void pack(const graph::Rows& rows, const Packed& shape, std::byte* out, uint64_t begin, uint64_t end);
void pack_input_rows(const graph::Rows& rows, const Packed& shape, std::byte* out, uint64_t begin, uint64_t end);

// Row-major f32 values as rows, to pack them by either function.
graph::Rows rows_of_values(const float* values, uint64_t rows, uint64_t cols);

}  // namespace tw::lane::cpu
