#pragma once

// Arg-max (argmax.h), as templates over the instruction set.

#include "lane/cpu/argmax.h"
#include "lane/cpu/reduce.h"

namespace tw::lane::cpu {

// The first maximum of x[begin .. end) above -infinity; items are counted from 1 at x[0].
template <class S>
TW_INLINE inline Best first_maximum(const float* x, uint64_t begin, uint64_t end) {
  int32_t item[16];
  for (int i = 0; i < 16; ++i) item[i] = static_cast<int32_t>(begin) + 1 + i;
  auto best = S::set(-__builtin_inff());
  auto best_item = S::izero();
  auto at = S::iload(item);
  uint64_t i = begin;
  for (; i + 16 <= end; i += 16) {
    const auto v = S::load(x + i);
    const auto more = S::greater(v, best);
    best = S::select(more, v, best);
    best_item = S::iselect(more, at, best_item);
    at = S::iadd(at, S::iset(16));
  }
  float value[16];
  S::store(value, best);
  S::istore(item, best_item);
  Best result{-__builtin_inff(), 0};
  for (int l = 0; l < 16; ++l)
    if (value[l] > result.value || (value[l] == result.value && item[l] != 0 && item[l] < result.item))
      result = {value[l], item[l]};
  for (; i < end; ++i)
    if (x[i] > result.value) result = {x[i], static_cast<int32_t>(i) + 1};
  return result;
}

template <class S>
void argmax_scan(const ArgMaxArgs& a, Range range, std::byte*) {
  const uint64_t pieces = argmax_pieces(a.n);
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t begin = item % pieces * kArgMaxPiece;
    a.best[item] = first_maximum<S>(a.x + item / pieces * a.n, begin, least(a.n, begin + kArgMaxPiece));
  }
}

TW_INLINE inline void advance(const ArgMaxArgs& a, uint64_t row) {
  const uint64_t each = a.rows / a.sequences;
  if (a.token == nullptr || (row + 1) % each != 0) return;
  a.token[row / each] = a.out[row];
  a.position[row / each] += a.consumed;
}

template <class S>
void argmax_merge(const ArgMaxArgs& a, Range range, std::byte*) {
  const uint64_t pieces = argmax_pieces(a.n);
  for (uint64_t row = range.begin; row < range.end; ++row) {
    const float first = a.x[row * a.n];
    Best best{-__builtin_inff(), 1};
    for (uint64_t p = 0; p < pieces; ++p)
      if (a.best[row * pieces + p].value > best.value) best = a.best[row * pieces + p];
    a.out[row] = first == first ? best.item : 1;
    advance(a, row);
  }
}

}  // namespace tw::lane::cpu
