#pragma once

// Two products of one activation through a gate: out = act(x gate + gate_bias, x up + up_bias), every product summed as
// apart (product.h) and every step of the activation rounded:
//   SwiGlu  silu(g) * u      GeGlu  gelu(g) * u
//   ClampedSwiGlu  g' = min(g, limit), u' = clamp(u, -limit, limit), (g' * sigmoid(slope * g')) * (u' + 1)

#include <cstddef>
#include <cstdint>

#include "graph/op.h"
#include "lane/cpu/product.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu {

// Items: panels of the outputs, pairs of panels where the result is quantized.
struct GluArgs {
  ProductArgs product;  // of two parts, the gate and the up matrix, whose `y` are not looked at
  graph::MoeAct act;
  Store out;  // unit r: the n values of row r
};
uint64_t items(const GluArgs& args);
size_t scratch_bytes(const GluArgs& args);

// Blocks of 32 gates, and of 32 ups, that a call holds: one a row, of one row one an item side by side.
inline uint64_t glu_slots(const GluArgs& args) { return args.product.rows == 1 ? kStreams / 2 : args.product.rows; }

using GluKernel = void (*)(const GluArgs& args, Range range, std::byte* scratch);
void glu_scalar(const GluArgs& args, Range range, std::byte* scratch);
void glu_avx2(const GluArgs& args, Range range, std::byte* scratch);
void glu_avx512(const GluArgs& args, Range range, std::byte* scratch);
GluKernel glu_kernel(Isa isa);

}  // namespace tw::lane::cpu
