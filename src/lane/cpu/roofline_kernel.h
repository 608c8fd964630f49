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

// Eight sums under way, so that the latency of one does not show.
template <class S>
int32_t dot_rounds(uint64_t rounds) {
  alignas(64) static constexpr int8_t kBytes[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const typename S::B u = S::bload(kBytes), s = S::bload(kBytes);
  typename S::I sums[8] = {S::izero(), S::izero(), S::izero(), S::izero(),
                           S::izero(), S::izero(), S::izero(), S::izero()};
  for (uint64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 8
    for (auto& sum : sums) {
      sum = S::dot4_small(sum, u, s);
      asm volatile("" : : :);
    }
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
