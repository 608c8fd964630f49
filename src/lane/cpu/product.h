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

#include "lane/cpu/isa.h"
#include "lane/cpu/pack_layout.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// One matrix, or with w.groups > 1 one matrix a head: head h reads x[r] from h * x_group on and writes y[r] from
// h * y_group on.
struct ProductPart {
  Packed w;
  const float* bias = nullptr;  // n values, or null
  float* y = nullptr;           // row r at r * y_pitch
  uint64_t y_pitch = 0;
  uint64_t x_group = 0;
  uint64_t y_group = 0;
};

// Items: the panels of the parts, one part after the other. Requires every part to have the same k. Plain x is read for
// floating-point weights and when words is 0; groups > 1 requires plain x.
struct ProductArgs {
  const ProductPart* parts = nullptr;
  uint32_t part_count = 0;
  uint64_t rows = 0;
  int words = 1;  // 1, 2; 0: precise
  const float* x = nullptr;
  uint64_t x_pitch = 0;
  QuantView quant;  // row r at value r * k
};
uint64_t items(const ProductArgs& args);
// Scratch a call with any range of items needs, 64-byte aligned.
size_t scratch_bytes(const ProductArgs& args);

// Cuts scratch as the kernels do.
struct ProductScratch {
  float* total;        // [rows][16]
  double* total64;     // [rows][16], precise
  double* widened;     // [512][16], precise
  int32_t* half_sums;  // [rows][k / 32]
  std::byte* decoded;  // a Decoded
  size_t bytes;
};
ProductScratch product_scratch(const ProductArgs& args, std::byte* storage);

// Whether a part's term has halves, so that half_sums is filled.
bool needs_half_sums(const ProductArgs& args);

// Item -> part and panel of the part.
struct ProductItem {
  uint32_t part;
  uint64_t panel;
};
ProductItem product_item(const ProductArgs& args, uint64_t item);

using ProductKernel = void (*)(const ProductArgs& args, Range range, std::byte* scratch);
void product_scalar(const ProductArgs& args, Range range, std::byte* scratch);
void product_avx2(const ProductArgs& args, Range range, std::byte* scratch);
void product_avx512(const ProductArgs& args, Range range, std::byte* scratch);
ProductKernel product_kernel(Isa isa);

}  // namespace tw::lane::cpu
