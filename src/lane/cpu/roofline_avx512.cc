#include "lane/cpu/roofline_kernel.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {

namespace {

constexpr int kChains = 12;  // sums under way: more than the latency of the dot times the two ports that do it

int32_t dot_rounds(uint64_t rounds) {
  __m512i u = _mm512_set1_epi8(3);
  const __m512i s = _mm512_set1_epi8(2);
  __m512i sums[kChains];
#pragma GCC unroll 12
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (uint64_t r = 0; r < rounds; ++r) {
    asm volatile("" : "+v"(u));
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, u, s);
  }
#pragma GCC unroll 12
  for (int c = 1; c < kChains; ++c) sums[0] = _mm512_add_epi32(sums[0], sums[c]);
  return _mm512_cvtsi512_si32(sums[0]);
}

}  // namespace

RooflineKernels roofline_avx512() {
  const DotLoop dots{dot_rounds, kChains * 64};
  return {stream_read<Avx512>, dots, dots};
}

}  // namespace tw::lane::cpu
