#pragma once

// The quantizer (quant.h), as templates over the instruction set.

#include "lane/cpu/quant.h"
#include "lane/cpu/reduce.h"

namespace tw::lane::cpu {

// The largest magnitude of a block by its bits: order free, and a NaN is larger than infinity.
template <class S>
TW_INLINE inline float block_max(typename S::V low, typename S::V high) {
  return S::most_bits(S::from_bits(S::imax(S::bits(S::abs(low)), S::bits(S::abs(high)))));
}

// The high words of 16 values, (v + 128) >> 8, and the low words that go with them.
template <class S>
TW_INLINE inline typename S::I high_words(typename S::I v) {
  return S::template isar<8>(S::iadd(v, S::iset(128)));
}
template <class S>
TW_INLINE inline typename S::I low_words(typename S::I v, typename S::I high) {
  return S::isub(v, S::template ishl<8>(high));
}

// Block `block` of `to` from the values of its halves.
template <class S>
TW_INLINE inline void quantize_block(typename S::V low, typename S::V high, const QuantView& to, uint64_t block,
                                     int words) {
  const float steps = words == 1 ? 127.0f : 32512.0f;
  const float largest = block_max<S>(low, high);
  const bool empty = largest < 0x1p-100f;
  const auto factor = S::set(empty ? 0.0f : steps / largest);
  to.scale[block] = empty ? 0.0f : largest / steps;
  const uint64_t at = block * kQuantBlock;
  const auto first = S::to_int(S::mul(low, factor));
  const auto second = S::to_int(S::mul(high, factor));
  S::store_i16(to.wide + at, first);
  S::store_i16(to.wide + at + 16, second);
  to.sum_half[block] = S::isum(first);
  if (words == 1) {
    S::store_i8(to.high + at, first);
    S::store_i8(to.high + at + 16, second);
    to.sum_high[block] = S::isum(S::iadd(first, second));
    return;
  }
  const auto first_high = high_words<S>(first), second_high = high_words<S>(second);
  const auto first_low = low_words<S>(first, first_high), second_low = low_words<S>(second, second_high);
  S::store_i8(to.high + at, first_high);
  S::store_i8(to.high + at + 16, second_high);
  S::store_i8(to.low + at, first_low);
  S::store_i8(to.low + at + 16, second_low);
  to.sum_high[block] = S::isum(S::iadd(first_high, second_high));
  // Of two words, so it is there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
  to.sum_low[block] = S::isum(S::iadd(first_low, second_low));
}

// From the first `count` values at x, 1 to 32.
template <class S>
TW_INLINE inline void quantize_block(const float* x, uint64_t count, const QuantView& to, uint64_t block, int words) {
  const auto part = [x, count](uint64_t first) {
    if (count >= first + 16) return S::load(x + first);
    return count > first ? S::load(x + first, static_cast<int>(count - first)) : S::zero();
  };
  quantize_block<S>(part(0), part(16), to, block, words);
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
