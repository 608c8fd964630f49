#pragma once

// The quantizer (quant.h), as templates over the instruction set.

#include "lane/cpu/quant.h"
#include "lane/cpu/reduce.h"

namespace tw::lane::cpu {

// The largest magnitude of a block by its bits: order free, and a NaN is larger than infinity.
template <class S>
TW_INLINE inline float block_max(typename S::V low, typename S::V high) {
  int32_t lane[16];
  S::istore(lane, S::imax(S::bits(S::abs(low)), S::bits(S::abs(high))));
  int32_t best = lane[0];
  for (int i = 1; i < 16; ++i) best = lane[i] > best ? lane[i] : best;
  return __builtin_bit_cast(float, best);
}

template <class S>
TW_INLINE inline int32_t lanes_sum(typename S::I v) {
  int32_t lane[16];
  S::istore(lane, v);
  uint32_t total = 0;
  for (int i = 0; i < 16; ++i) total += static_cast<uint32_t>(lane[i]);
  return static_cast<int32_t>(total);
}

// One half of a block: 16 values v = rint(x * factor), split into words.
template <class S>
struct QuantHalf {
  typename S::I high, low;
};
template <class S>
TW_INLINE inline QuantHalf<S> quantize_half(const QuantView& to, uint64_t at, typename S::V x, float factor,
                                            int words) {
  const auto v = S::to_int(S::mul(x, S::set(factor)));
  S::store_i16(to.wide + at, v);
  if (words == 1) {
    S::store_i8(to.high + at, v);
    return {v, v};
  }
  const auto high = S::template isar<8>(S::iadd(v, S::iset(128)));
  const auto low = S::isub(v, S::template ishl<8>(high));
  S::store_i8(to.high + at, high);
  S::store_i8(to.low + at, low);
  return {high, low};
}

// Block `block` of `to` from up to 32 values.
template <class S>
TW_INLINE inline void quantize_block(const float* x, uint64_t count, const QuantView& to, uint64_t block, int words) {
  const float steps = words == 1 ? 127.0f : 32512.0f;
  const auto low = count >= 16 ? S::load(x) : S::load(x, static_cast<int>(count));
  auto high = S::zero();
  if (count == 32) high = S::load(x + 16);
  if (count > 16 && count < 32) high = S::load(x + 16, static_cast<int>(count - 16));
  const float largest = block_max<S>(low, high);
  const bool empty = largest < 0x1p-100f;
  const float factor = empty ? 0.0f : steps / largest;
  to.scale[block] = empty ? 0.0f : largest / steps;
  const auto first = quantize_half<S>(to, block * kQuantBlock, low, factor, words);
  const auto second = quantize_half<S>(to, block * kQuantBlock + 16, high, factor, words);
  to.sum_high[block] = lanes_sum<S>(S::iadd(first.high, second.high));
  if (words == 1) {
    to.sum_half[block] = lanes_sum<S>(first.high);
  } else {
    to.sum_half[block] = lanes_sum<S>(S::iadd(S::template ishl<8>(first.high), first.low));
    to.sum_low[block] = lanes_sum<S>(S::iadd(first.low, second.low));
  }
}

template <class S>
void quant(const QuantArgs& a, Range range, std::byte*) {
  const uint64_t blocks = quant_padded(a.cols) / kQuantBlock;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t begin = item % blocks * kQuantBlock;
    quantize_block<S>(a.x + item / blocks * a.pitch + begin, least(kQuantBlock, a.cols - begin), a.to, item, a.words);
  }
}

}  // namespace tw::lane::cpu
