#pragma once

// Squares of a panel turned in 128-bit registers, which every x86-64 machine has: rows of fields in, fields of 16 rows
// out. From and to lie at any address.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lane/cpu/pack_layout.h"

namespace tw::lane::cpu {

inline __m128i load128(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
inline void store128(void* to, __m128i value) { _mm_storeu_si128(static_cast<__m128i*>(to), value); }

// Words 0 to 3 of 4 rows to word columns: out[i] holds word i of row 0, 1, 2, 3.
inline void turn_words4(const __m128i row[4], __m128i out[4]) {
  const __m128i low01 = _mm_unpacklo_epi32(row[0], row[1]), low23 = _mm_unpacklo_epi32(row[2], row[3]);
  const __m128i high01 = _mm_unpackhi_epi32(row[0], row[1]), high23 = _mm_unpackhi_epi32(row[2], row[3]);
  out[0] = _mm_unpacklo_epi64(low01, low23);
  out[1] = _mm_unpackhi_epi64(low01, low23);
  out[2] = _mm_unpacklo_epi64(high01, high23);
  out[3] = _mm_unpackhi_epi64(high01, high23);
}

// to[w][r] = word w of the row at rows + r * row_bytes, for all 16 rows.
template <int kWords>
inline void turn_words(const std::byte* rows, size_t row_bytes, std::byte* to) {
  constexpr size_t kColumn = 4 * kPanel;
  for (int w = 0; w + 4 <= kWords; w += 4) {
    for (size_t r = 0; r < kPanel; r += 4) {
      __m128i row[4], out[4];
      for (size_t i = 0; i < 4; ++i) row[i] = load128(rows + (r + i) * row_bytes + 4 * w);
      turn_words4(row, out);
      for (size_t i = 0; i < 4; ++i) store128(to + (static_cast<size_t>(w) + i) * kColumn + 4 * r, out[i]);
    }
  }
  for (int w = kWords / 4 * 4; w < kWords; ++w)
    for (size_t r = 0; r < kPanel; ++r)
      std::memcpy(to + static_cast<size_t>(w) * kColumn + 4 * r, rows + r * row_bytes + 4 * w, 4);
}

// to[c][r] = half c of row r, c from 0 to 7, for all 16 rows.
inline void turn_halves8(const std::byte* const rows[kPanel], size_t at, std::byte* to) {
  for (size_t r = 0; r < kPanel; r += 8) {
    __m128i pair[8], four[8];
    for (size_t i = 0; i < 8; i += 2) {
      const __m128i a = load128(rows[r + i] + at), b = load128(rows[r + i + 1] + at);
      pair[i] = _mm_unpacklo_epi16(a, b);
      pair[i + 1] = _mm_unpackhi_epi16(a, b);
    }
    // four[h][...]: rows 0..3 of the half h of the columns, then rows 4..7.
    for (size_t h = 0; h < 2; ++h) {
      for (size_t q = 0; q < 2; ++q) {
        four[4 * q + 2 * h] = _mm_unpacklo_epi32(pair[4 * q + h], pair[4 * q + 2 + h]);
        four[4 * q + 2 * h + 1] = _mm_unpackhi_epi32(pair[4 * q + h], pair[4 * q + 2 + h]);
      }
    }
    for (size_t c = 0; c < 4; ++c) {
      store128(to + 2 * c * (2 * kPanel) + 2 * r, _mm_unpacklo_epi64(four[c], four[4 + c]));
      store128(to + (2 * c + 1) * (2 * kPanel) + 2 * r, _mm_unpackhi_epi64(four[c], four[4 + c]));
    }
  }
}

// to[c][r] = value c of the 16 bytes at rows[r] + at, for all 16 rows; T is 4 or 2 bytes.
template <class T>
inline void turn_square(const std::byte* const rows[kPanel], size_t at, std::byte* to) {
  if constexpr (sizeof(T) == 2) return turn_halves8(rows, at, to);
  for (size_t r = 0; r < kPanel; r += 4) {
    __m128i row[4], out[4];
    for (size_t i = 0; i < 4; ++i) row[i] = load128(rows[r + i] + at);
    turn_words4(row, out);
    for (size_t i = 0; i < 4; ++i) store128(to + i * 4 * kPanel + 4 * r, out[i]);
  }
}

// to[c][r] = byte c of the row at rows + r * row_bytes, c from 0 to 7, for all 16 rows.
inline void turn_bytes8(const std::byte* rows, size_t row_bytes, std::byte* to) {
  __m128i two[8], four[8], eight[8];
  for (size_t i = 0; i < 8; ++i) {
    const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows + 2 * i * row_bytes));
    const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows + (2 * i + 1) * row_bytes));
    two[i] = _mm_unpacklo_epi8(a, b);  // columns 0..7 of 2 rows
  }
  for (size_t i = 0; i < 4; ++i) {
    four[2 * i] = _mm_unpacklo_epi16(two[2 * i], two[2 * i + 1]);      // columns 0..3 of 4 rows
    four[2 * i + 1] = _mm_unpackhi_epi16(two[2 * i], two[2 * i + 1]);  // columns 4..7
  }
  for (size_t i = 0; i < 2; ++i) {
    for (size_t h = 0; h < 2; ++h) {
      eight[4 * i + 2 * h] = _mm_unpacklo_epi32(four[4 * i + h], four[4 * i + 2 + h]);      // columns 4h, 4h + 1
      eight[4 * i + 2 * h + 1] = _mm_unpackhi_epi32(four[4 * i + h], four[4 * i + 2 + h]);  // columns 4h + 2, 4h + 3
    }
  }
  for (size_t c = 0; c < 4; ++c) {
    store128(to + 2 * c * kPanel, _mm_unpacklo_epi64(eight[c], eight[4 + c]));
    store128(to + (2 * c + 1) * kPanel, _mm_unpackhi_epi64(eight[c], eight[4 + c]));
  }
}

// The same for any number of columns.
template <int kColumns>
inline void turn_bytes(const std::byte* rows, size_t row_bytes, std::byte* to) {
  for (size_t c = 0; c + 8 <= kColumns; c += 8) turn_bytes8(rows + c, row_bytes, to + c * kPanel);
  for (size_t c = kColumns / 8 * 8; c < kColumns; ++c)
    for (size_t r = 0; r < kPanel; ++r) to[c * kPanel + r] = rows[r * row_bytes + c];
}

}  // namespace tw::lane::cpu
