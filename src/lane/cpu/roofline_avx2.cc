#include "lane/cpu/roofline_kernel.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu {

namespace {

// kChains sums under way, so that the latency of one does not show. Each adds kSteps vectors of pair sums in 16 bits
// before they are widened. `u` is made opaque before each use, so that no part of a dot is shared or kept.
template <int kSteps, int kChains>
int32_t dot_rounds(uint64_t rounds) {
  __m256i u = _mm256_set1_epi8(3);
  const __m256i s = _mm256_set1_epi8(2), one = _mm256_set1_epi16(1);
  __m256i sums[kChains];
#pragma GCC unroll 8
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (uint64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kChains; ++c) {
      asm volatile("" : "+x"(u));
      __m256i pairs = _mm256_maddubs_epi16(u, s);
#pragma GCC unroll 4
      for (int step = 1; step < kSteps; ++step) {
        asm volatile("" : "+x"(u));
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(u, s));
      }
      sums[c] = _mm256_add_epi32(sums[c], _mm256_madd_epi16(pairs, one));
    }
  }
#pragma GCC unroll 8
  for (int c = 1; c < kChains; ++c) sums[0] = _mm256_add_epi32(sums[0], sums[c]);
  return _mm256_extract_epi32(sums[0], 0);
}

}  // namespace

RooflineKernels roofline_avx2() {
  return {stream_read<Avx2>, {dot_rounds<1, 6>, 6 * 32}, {dot_rounds<4, 4>, 4 * 4 * 32}};
}

}  // namespace tw::lane::cpu
