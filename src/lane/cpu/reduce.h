#pragma once

// The reduction shapes of the numerics contract over 16-lane vectors, and the loop over a row that the kernels share.

#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

TW_INLINE inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Calls body(part, own) for the parts that hold items of `range`, items being counted part after part.
template <class Part, class Body>
TW_INLINE inline void each_part(const Part* parts, uint64_t count, Range range, Body body) {
  uint64_t first = 0;
  for (uint64_t p = 0; p < count; ++p) {
    const uint64_t end = first + items(parts[p]);
    if (range.begin < end && first < range.end)
      body(parts[p], Range{range.begin > first ? range.begin - first : 0, least(range.end, end) - first});
    first = end;
  }
}

// 16 consecutive elements, or the first `count` of them (the rest reads as +0 and is not written).
template <class S>
struct Whole {
  TW_INLINE typename S::V load(const float* p) const { return S::load(p); }
  TW_INLINE void store(float* p, typename S::V v) const { S::store(p, v); }
};
template <class S>
struct Some {
  int count;
  TW_INLINE typename S::V load(const float* p) const { return S::load(p, count); }
  TW_INLINE void store(float* p, typename S::V v) const { S::store(p, v, count); }
};

// body(lanes, i) for i = begin, begin + 16, ...: lanes a Whole, at the ragged end a Some.
template <class S, class Body>
TW_INLINE inline void each16(uint64_t begin, uint64_t end, Body body) {
  uint64_t i = begin;
  for (; i + 16 <= end; i += 16) body(Whole<S>{}, i);
  if (i < end) body(Some<S>{static_cast<int>(end - i)}, i);
}

// LT, the lane tree: cut [0, n) at multiples of 1024; in a piece lane l of 32 takes the elements = l mod 32 ascending,
// from +0, the piece filled up with +0 terms to a multiple of 32; then x[l] += x[l + h] for h = 16, 8, 4, 2, 1; pieces
// are chained ascending from +0.
// term(acc, lanes, i): acc with the terms of elements i .. i + 15 added.
template <class S, class Term>
TW_INLINE inline float lane_tree(uint64_t n, Term term) {
  float total = 0;
  for (uint64_t begin = 0; begin < n; begin += 1024) {
    const uint64_t end = least(n, begin + 1024);
    auto low = S::zero();
    auto high = S::zero();
    uint64_t i = begin;
    for (; i + 32 <= end; i += 32) {
      low = term(low, Whole<S>{}, i);
      high = term(high, Whole<S>{}, i + 16);
    }
    if (i + 16 <= end) {
      low = term(low, Whole<S>{}, i);
      i += 16;
      high = i < end ? term(high, Some<S>{static_cast<int>(end - i)}, i) : S::add(high, S::zero());
    } else if (i < end) {
      low = term(low, Some<S>{static_cast<int>(end - i)}, i);
      high = S::add(high, S::zero());
    }
    total += S::tree(S::add(low, high));
  }
  return total;
}

// LT of x^2, of x.
template <class S>
TW_INLINE inline float sum_of_squares(const float* x, uint64_t n) {
  return lane_tree<S>(n, [x](auto acc, auto lanes, uint64_t i) {
    const auto v = lanes.load(x + i);
    return S::fma(v, v, acc);
  });
}
template <class S>
TW_INLINE inline float sum(const float* x, uint64_t n) {
  return lane_tree<S>(n, [x](auto acc, auto lanes, uint64_t i) { return S::add(acc, lanes.load(x + i)); });
}

}  // namespace tw::lane::cpu
