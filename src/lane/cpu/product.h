#pragma once

// Products of activation rows by packed weights: y[r][o] = sum over t of x[r][t] * w[o][t], then + bias[o].
//
// The bits of a row depend on neither the other rows, the parts, the ranges nor the instruction set. Orders
// (docs/numerics.md, "Products"):
//   quantized weights, words 1 or 2:  CC(16 blocks) over x quantized; the term of the format a block
//   floating-point weights:           CC(64) in f32 over plain x, weights widened exactly
//   words 0 (precise):                the same segments in f64 over plain x, weights widened exactly, rounded at the
//   end

#include <cstddef>
#include <cstdint>

#include "lane/cpu/block_weights.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/pack_layout.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/simd.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu {

// One matrix, or with w.groups > 1 one matrix a head: head h reads x[r] from h * x_group on.
struct ProductPart {
  Packed w;
  const float* bias = nullptr;  // n values, or null
  Store y;                      // unit r * w.groups + h: the n values of row r and head h
  uint64_t x_group = 0;
};

// Items: the panels of the parts, one part after the other; of a part with a quantized result pairs of panels, since
// one thread must own whole blocks of a row. Requires every part to have the same k. Plain x is read for floating-point
// weights and when words is 0; groups > 1 requires plain x, and 16-bit x floating-point weights.
struct ProductArgs {
  const ProductPart* parts = nullptr;
  uint32_t part_count = 0;
  uint64_t rows = 0;
  int words = 1;  // 1, 2; 0: precise
  const void* x = nullptr;
  Dtype x_type = Dtype::F32;  // F32, F16 or BF16: what x is stored as
  uint64_t x_pitch = 0;       // row r at element x_offset + r * x_pitch
  uint64_t x_offset = 0;
  QuantView quant;  // row r at value r * k
  // Only the first *upto + upto_count rows, at most all; without `upto` all.
  const int32_t* upto = nullptr;
  uint32_t upto_count = 0;
};
uint64_t items(const ProductArgs& args);
// The rows that are multiplied.
uint64_t product_rows(const ProductArgs& args);
// Scratch a call with any range of items needs, 64-byte aligned.
size_t scratch_bytes(const ProductArgs& args);

// Panels that a pass multiplies together, and the rows of it that all of them multiply before the next rows.
inline constexpr uint64_t kPassPanels = 4;
inline constexpr uint64_t kPassRows = 64;

// Scratch as the kernels cut it.
struct ProductScratch {
  float* total;      // [kPassPanels][rows][16]
  double* total64;   // [kPassPanels][rows][16], precise
  double* widened;   // [512][16], precise
  float* block;      // [rows][kPassPanels * 16], of a result that is not stored as it is; of one row [kStreams][32]
  float* widened_x;  // [kWidenedRows][k], of 16-bit x
  BlockWeights* unpacked;  // [kPassPanels]
  size_t bytes;
};
ProductScratch product_scratch(const ProductArgs& args, std::byte* storage);

// Panels that one row is multiplied by side by side, where those of a part are.
inline constexpr int kStreams = 4;
static_assert(kStreams <= kPassPanels);
TW_INLINE constexpr bool in_streams(const ProductArgs& args, const ProductPart& part) {
  return args.rows == 1 && args.words != 0 && part.w.groups == 1 && args.x_type == Dtype::F32;
}

// From so many rows on a segment's weights are unpacked apart from its products; fewer are multiplied two by two.
inline constexpr uint64_t kBlockFrom = 12;

// Rows of 16-bit x that are widened at a time.
inline constexpr uint64_t kWidenedRows = 64;

// Panels that an item with this result covers.
TW_INLINE constexpr uint64_t panels_an_item(const Store& result) { return stores_quantized(result) ? 2 : 1; }
uint64_t items(const ProductPart& part);

// Item -> part and item of the part.
struct ProductItem {
  uint32_t part;
  uint64_t item;
};
ProductItem product_item(const ProductArgs& args, uint64_t item);

using ProductKernel = void (*)(const ProductArgs& args, Range range, std::byte* scratch);
void product_scalar(const ProductArgs& args, Range range, std::byte* scratch);
void product_avx2(const ProductArgs& args, Range range, std::byte* scratch);
void product_avx512(const ProductArgs& args, Range range, std::byte* scratch);
ProductKernel product_kernel(Isa isa);

}  // namespace tw::lane::cpu
