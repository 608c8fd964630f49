#pragma once

// The roofline's loops, written once for every instruction set (simd.h).

#include "lane/cpu/roofline.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

template <class S>
uint32_t stream_read(const void* data, uint64_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  typename S::B a = S::bload(at), b = a, c = a, d = a;
  for (uint64_t i = 0; i < bytes; i += 256) {
    a = S::bxor(a, S::bload(at + i));
    b = S::bxor(b, S::bload(at + i + 64));
    c = S::bxor(c, S::bload(at + i + 128));
    d = S::bxor(d, S::bload(at + i + 192));
  }
  alignas(64) int32_t lanes[16];
  S::istore(lanes, S::i_of(S::bxor(S::bxor(a, b), S::bxor(c, d))));
  uint32_t sum = 0;
  for (const int32_t lane : lanes) sum += static_cast<uint32_t>(lane);
  return sum;
}

// Eight sums under way, so that the latency of one does not show. Each has operands of its own that the compiler must
// read again every round, so that no part of a dot is shared or kept.
template <class S>
int32_t dot_rounds(uint64_t rounds) {
  alignas(64) int8_t bytes[8][64];
  for (auto& vector : bytes) {
    for (int i = 0; i < 64; ++i) vector[i] = static_cast<int8_t>(i);
  }
  typename S::I sums[8] = {S::izero(), S::izero(), S::izero(), S::izero(),
                           S::izero(), S::izero(), S::izero(), S::izero()};
  for (uint64_t r = 0; r < rounds; ++r) {
    asm volatile("" : : "r"(bytes) : "memory");
    const typename S::B s = S::bload(bytes[0]);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sums[i] = S::dot4_small(sums[i], S::bload(bytes[i]), s);
  }
  alignas(64) int32_t lanes[16];
  int32_t total = 0;
  for (const auto& sum : sums) {
    S::istore(lanes, sum);
    for (const int32_t lane : lanes) total ^= lane;
  }
  return total;
}

}  // namespace tw::lane::cpu
