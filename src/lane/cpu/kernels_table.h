#pragma once

// The table of one instruction set, filled from the templates.

#include "lane/cpu/argmax_kernels.h"
#include "lane/cpu/elementwise_kernels.h"
#include "lane/cpu/kernels.h"
#include "lane/cpu/move_kernels.h"
#include "lane/cpu/norm_kernels.h"
#include "lane/cpu/quant_kernels.h"
#include "lane/cpu/rope_kernels.h"

namespace tw::lane::cpu {

// Instantiated in units of their own (attention_kernels.h, carried_kernels.h).
template <class S>
void attention_chunks(const AttentionArgs& a, Range range, std::byte* scratch);
template <class S>
void attention_merge(const AttentionArgs& a, Range range, std::byte* scratch);
template <class S>
void attention_rows(const AttentionArgs& a, Range range, std::byte* scratch);
template <class S>
void conv(const ConvArgs& a, Range range, std::byte* scratch);
template <class S>
void conv_parts(const ConvPartsArgs& a, Range range, std::byte* scratch);
template <class S>
void delta_update(const DeltaArgs& a, Range range, std::byte* scratch);
template <class S>
void delta_chunks(const DeltaArgs& a, Range range, std::byte* scratch);
template <class S>
void delta_norm(const DeltaArgs& a, Range range, std::byte* scratch);

template <class S>
constexpr Kernels kernels_of() {
  return {.norm = norm<S>,
          .l2_norm = l2_norm<S>,
          .softmax = softmax<S>,
          .quant = quant<S>,
          .binary = binary<S>,
          .scale = scale<S>,
          .swiglu = swiglu<S>,
          .unary = unary<S>,
          .gates = gates<S>,
          .rope = rope<S>,
          .rope_parts = rope_parts<S>,
          .gather = gather<S>,
          .copy = copy<S>,
          .join = join<S>,
          .transpose = transpose<S>,
          .cache_write = cache_write<S>,
          .conv = conv<S>,
          .conv_parts = conv_parts<S>,
          .delta_update = delta_update<S>,
          .delta_chunks = delta_chunks<S>,
          .delta_norm = delta_norm<S>,
          .argmax_scan = argmax_scan<S>,
          .argmax_merge = argmax_merge<S>,
          .attention_chunks = attention_chunks<S>,
          .attention_merge = attention_merge<S>,
          .attention_rows = attention_rows<S>};
}

}  // namespace tw::lane::cpu
