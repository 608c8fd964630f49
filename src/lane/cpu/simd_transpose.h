#pragma once

// Transposed squares of floats on 256-bit registers, for the wrappers of AVX2 and AVX-512.

#include <immintrin.h>

#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// to[pitch * i + j] = from[pitch * j + i], 8 x 8.
TW_INLINE inline void transpose8(const float* from, float* to, uint64_t pitch) {
  __m256 row[8], pair[8], four[8];
  for (uint64_t i = 0; i < 8; ++i) row[i] = _mm256_loadu_ps(from + i * pitch);
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  // Columns c and c + 4 of rows 0 .. 3 in four[c], of rows 4 .. 7 in four[c + 4].
  for (int i = 0; i < 8; i += 4) {
    four[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    four[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    four[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    four[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
  for (uint64_t c = 0; c < 4; ++c) {
    _mm256_storeu_ps(to + c * pitch, _mm256_permute2f128_ps(four[c], four[c + 4], 0x20));
    _mm256_storeu_ps(to + (c + 4) * pitch, _mm256_permute2f128_ps(four[c], four[c + 4], 0x31));
  }
}

TW_INLINE inline void transpose16(const float* from, float* to) {
  transpose8(from, to, 16);
  transpose8(from + 8 * 16, to + 8, 16);
  transpose8(from + 8, to + 8 * 16, 16);
  transpose8(from + 8 * 16 + 8, to + 8 * 16 + 8, 16);
}

}  // namespace tw::lane::cpu
