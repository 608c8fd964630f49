#pragma once

// Elements of arrays that may be stored in 16 bits, as templates over the instruction set.

#include "lane/cpu/reduce.h"
#include "lane/cpu/simd.h"
#include "lane/types.h"

namespace tw::lane::cpu {

// Elements of a stored type: `load` widens 16 (or n) of them, `store` rounds. offset: the element's address.
template <class S>
struct StoredF32 {
  using Element = float;
  TW_SIMD auto load(const Element* p) { return S::load(p); }
  TW_SIMD auto load(const Element* p, int n) { return S::load(p, n); }
  TW_SIMD void store(Element* p, typename S::V v) { S::store(p, v); }
  TW_SIMD void store(Element* p, typename S::V v, int n) { S::store(p, v, n); }
};
template <class S>
struct StoredF16 {
  using Element = uint16_t;
  TW_SIMD auto load(const Element* p) { return S::load_f16(p); }
  TW_SIMD auto load(const Element* p, int n) { return S::load_f16(p, n); }
  TW_SIMD void store(Element* p, typename S::V v) { S::store_f16(p, v); }
  TW_SIMD void store(Element* p, typename S::V v, int n) { S::store_f16(p, v, n); }
};
template <class S>
struct StoredBf16 {
  using Element = uint16_t;
  TW_SIMD auto load(const Element* p) { return S::load_bf16(p); }
  TW_SIMD auto load(const Element* p, int n) { return S::load_bf16(p, n); }
  TW_SIMD void store(Element* p, typename S::V v) { S::store_bf16(p, v); }
  TW_SIMD void store(Element* p, typename S::V v, int n) { S::store_bf16(p, v, n); }
};

// Calls body(stored) with the struct for a type.
template <class S, class Body>
TW_INLINE inline void with_stored(Dtype type, Body body) {
  if (type == Dtype::F16) return body(StoredF16<S>{});
  if (type == Dtype::BF16) return body(StoredBf16<S>{});
  return body(StoredF32<S>{});
}

template <class S, class From, class To>
TW_INLINE inline void convert(From, const typename From::Element* x, To, typename To::Element* y, uint64_t n) {
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16) To::store(y + i, From::load(x + i));
  if (i < n) To::store(y + i, From::load(x + i, static_cast<int>(n - i)), static_cast<int>(n - i));
}

// n values to every `stride`th element from `to` on.
template <class S, class Stored>
TW_INLINE inline void store_every(Stored, typename Stored::Element* to, uint64_t stride, const float* x, uint64_t n) {
  typename Stored::Element narrow[16];
  for (uint64_t e = 0; e < n; e += 16) {
    const auto count = static_cast<int>(least(16, n - e));
    if (count == 16)
      Stored::store(narrow, S::load(x + e));
    else
      Stored::store(narrow, S::load(x + e, count), count);
    for (int i = 0; i < count; ++i) to[(e + static_cast<uint64_t>(i)) * stride] = narrow[i];
  }
}

}  // namespace tw::lane::cpu
