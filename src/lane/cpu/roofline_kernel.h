#pragma once

// The roofline's streaming read, written once for every instruction set (simd.h).

#include "lane/cpu/roofline.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// kReadStreams runs of the data side by side, 256 bytes of each in turn.
template <class S>
uint32_t stream_read(const void* data, uint64_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  const uint64_t run = bytes / kReadStreams;
  typename S::B a = S::bload(at), b = a, c = a, d = a;
  for (uint64_t i = 0; i < run; i += 256) {
#pragma GCC unroll 4
    for (uint64_t stream = 0; stream < kReadStreams; ++stream) {
      const std::byte* from = at + stream * run + i;
      a = S::bxor(a, S::bload(from));
      b = S::bxor(b, S::bload(from + 64));
      c = S::bxor(c, S::bload(from + 128));
      d = S::bxor(d, S::bload(from + 192));
    }
  }
  alignas(64) int32_t lanes[16];
  S::istore(lanes, S::i_of(S::bxor(S::bxor(a, b), S::bxor(c, d))));
  uint32_t sum = 0;
  for (const int32_t lane : lanes) sum += static_cast<uint32_t>(lane);
  return sum;
}

}  // namespace tw::lane::cpu
