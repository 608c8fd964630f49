#pragma once

// What a block of a quantized product adds to a chain, from its exact integer sums: one piece for one row
// (product_row.h) and for many (product_block.h), so that both compute the same. docs/numerics.md, "Products".

#include "lane/cpu/pack_layout.h"
#include "lane/cpu/simd.h"
#include "lane/cpu/tile_input.h"

namespace tw::lane::cpu {

// Whether a half has an integer sub-scale; whether the halves have sums of their own; whether there is a minimum.
constexpr bool has_sub_scales(Term term) { return term == Term::Halves || term == Term::HalvesMin; }
constexpr bool has_halves(Term term) { return has_sub_scales(term) || term == Term::TwoScales; }
constexpr bool has_min(Term term) { return term == Term::ScaleMin || term == Term::HalvesMin; }

// Steps, at most `steps` and a power of two, whose sums fit 16 bits together; 1 says nothing of the sum of one.
constexpr int steps_in_16_bits(int steps, int step_sum) {
  return steps == 1 || steps * step_sum <= 32767 ? steps : steps_in_16_bits(steps / 2, step_sum);
}

template <class S, Term kTerm, int kWords>
struct BlockTerm {
  using V = typename S::V;
  using I = typename S::I;

  // s0 S0 + s1 S1, rounded once. With two words the sum can pass 32 bits: it is taken as 256 T_h + T_l, T_h and T_l
  // exact in f32, by one fma.
  TW_SIMD V weighted(I s0, I s1, I first, I second) {
    if constexpr (kWords == 1) return S::to_float(S::iadd(S::imul(s0, first), S::imul(s1, second)));
    const I byte = S::iset(255);
    const I high = S::iadd(S::imul(s0, S::template isar<8>(first)), S::imul(s1, S::template isar<8>(second)));
    const I low = S::iadd(S::imul(s0, S::iand(first, byte)), S::imul(s1, S::iand(second, byte)));
    return S::fma(S::set(256.0f), S::to_float(high), S::to_float(low));
  }

  // The chain `a` and the term of block `at` of x. first, second: S0 and S1 where kApart, else first is S, or s0 S0 +
  // s1 S1. weights: scale1(), sub(h) and sub_min(h) of the block, as in product_source.h.
  template <bool kApart, class Weights>
  TW_SIMD V add(V a, const Weights& weights, V scale, V neg_min, const TileInput& x, uint64_t at, I first, I second) {
    const V d = S::set(x.scale[at]);
    V sum;
    if constexpr (kApart && has_sub_scales(kTerm))
      sum = weighted(weights.sub(0), weights.sub(1), first, second);
    else
      sum = S::to_float(first);
    a = S::fma(S::mul(scale, d), sum, a);
    if constexpr (kTerm == Term::TwoScales) a = S::fma(S::mul(weights.scale1(), d), S::to_float(second), a);
    if constexpr (kTerm == Term::ScaleMin) a = S::fma(S::mul(neg_min, d), S::to_float(S::iset(x.sum<kWords>(at))), a);
    if constexpr (kTerm == Term::HalvesMin) {
      const int32_t half = x.half_sums[at];
      const I m = S::iadd(S::imul(weights.sub_min(0), S::iset(half)),
                          S::imul(weights.sub_min(1), S::iset(x.sum<kWords>(at) - half)));
      a = S::fma(S::mul(neg_min, d), S::to_float(m), a);
    }
    return a;
  }
};

}  // namespace tw::lane::cpu
