#pragma once

// File blocks taken apart into the fields of a run (pack_layout.h). One struct a format: header() reads the scales of a
// file block, words() the codes of its b-th 32 values. Words are combined four bytes a time; a file's byte order is
// little-endian, and so is the word order here.

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "lane/cpu/pack_layout.h"
#include "lane/cpu/pack_transpose.h"

namespace tw::lane::cpu {

static_assert(std::endian::native == std::endian::little, "packed words are little-endian");

struct RunHeader {
  uint32_t scale = 0;  // f32, or f16 or e8m0 in the low bytes
  uint16_t min = 0;
  int8_t sub[16] = {};
  uint8_t sub_min[8] = {};
};

inline uint32_t word_at(const std::byte* p) {
  uint32_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}
inline uint16_t half_at(const std::byte* p) {
  uint16_t half = 0;
  std::memcpy(&half, p, sizeof half);
  return half;
}

// Bits 0, 4, 8, ... 28 of x, side by side.
inline uint32_t every_fourth_bit(uint32_t x) {
  x &= 0x11111111U;
  x = (x | x >> 3) & 0x03030303U;
  x = (x | x >> 6) & 0x000f000fU;
  return (x | x >> 12) & 0xffU;
}

// Formats whose 16 bytes hold value j in the low nibble of byte j and value 16 + j in the high one.
inline void copy_nibbles(const std::byte* bytes, uint32_t* low) { std::memcpy(low, bytes, 16); }

// A fifth bit for each of 32 values, bit v for value v.
inline void spread_fifth_bits(uint32_t bits, uint32_t* high) {
  high[0] = every_fourth_bit(bits) | every_fourth_bit(bits >> 1) << 8 | every_fourth_bit(bits >> 2) << 16 |
            every_fourth_bit(bits >> 3) << 24;
}

// Bytes shifted down by `shift`, what came from a neighbour masked off: the field of `mask` bits of each byte.
inline __m128i fields(__m128i bytes, int shift, char mask) {
  return _mm_and_si128(_mm_srl_epi16(bytes, _mm_cvtsi32_si128(shift)), _mm_set1_epi8(mask));
}

// Formats whose 32 bytes hold 32 values in one nibble of each, chosen by `shift`.
inline void join_nibbles(const std::byte* bytes, int shift, uint32_t* low) {
  const __m128i first = fields(load128(bytes), shift, 15), second = fields(load128(bytes + 16), shift, 15);
  store128(low, _mm_or_si128(first, _mm_slli_epi16(second, 4)));
}

// Word 0 to 3, each shifted up by `kBits` more than the one before, in one.
template <int kBits>
inline uint32_t stack_words(__m128i x) {
  x = _mm_or_si128(x, _mm_slli_epi32(_mm_srli_si128(x, 4), kBits));
  x = _mm_or_si128(x, _mm_slli_epi32(_mm_srli_si128(x, 8), 2 * kBits));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(x));
}

// The eight 6-bit scales and minima of Q4_K and Q5_K: the low six bits of bytes 0 to 7, then the nibbles of bytes 8 to
// 11 under the top two bits of bytes 0 to 7.
inline void sub_scales_k4(const std::byte* packed, RunHeader& header) {
  const uint32_t scales = word_at(packed), mins = word_at(packed + 4), nibbles = word_at(packed + 8);
  const uint32_t sub[2] = {scales & 0x3f3f3f3fU, (nibbles & 0x0f0f0f0fU) | (scales >> 6 & 0x03030303U) << 4};
  const uint32_t sub_min[2] = {mins & 0x3f3f3f3fU, (nibbles >> 4 & 0x0f0f0f0fU) | (mins >> 6 & 0x03030303U) << 4};
  std::memcpy(header.sub, sub, sizeof sub);
  std::memcpy(header.sub_min, sub_min, sizeof sub_min);
}

// A 6-bit sub-scale of offset 32: its low 4 bits and its top 2.
inline int8_t sub_scale_of_6_bits(unsigned low, unsigned top) {
  return static_cast<int8_t>(static_cast<int>((low & 15U) | (top & 3U) << 4) - 32);
}

struct FileQ8_0 {
  static void header(const std::byte* p, RunHeader& h) { h.scale = half_at(p); }
  static void words(const std::byte* p, int, uint32_t* low, uint32_t*) { std::memcpy(low, p + 2, 32); }
};

struct FileQ4_0 {  // IQ4_NL has the same fields
  static void header(const std::byte* p, RunHeader& h) { h.scale = half_at(p); }
  static void words(const std::byte* p, int, uint32_t* low, uint32_t*) { copy_nibbles(p + 2, low); }
};

struct FileQ4_1 {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p);
    h.min = half_at(p + 2);
  }
  static void words(const std::byte* p, int, uint32_t* low, uint32_t*) { copy_nibbles(p + 4, low); }
};

struct FileQ5_0 {
  static void header(const std::byte* p, RunHeader& h) { h.scale = half_at(p); }
  static void words(const std::byte* p, int, uint32_t* low, uint32_t* high) {
    copy_nibbles(p + 6, low);
    spread_fifth_bits(word_at(p + 2), high);
  }
};

struct FileQ5_1 {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p);
    h.min = half_at(p + 2);
  }
  static void words(const std::byte* p, int, uint32_t* low, uint32_t* high) {
    copy_nibbles(p + 8, low);
    spread_fifth_bits(word_at(p + 4), high);
  }
};

struct FileMXFP4 {
  static void header(const std::byte* p, RunHeader& h) { h.scale = static_cast<uint16_t>(*p); }
  static void words(const std::byte* p, int, uint32_t* low, uint32_t*) { copy_nibbles(p + 1, low); }
};

// d, dmin, 12 bytes of 6-bit sub-scales, then nibbles: 64 values in each 32 bytes, the first 32 in the low nibbles.
struct FileQ4_K {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p);
    h.min = half_at(p + 2);
    sub_scales_k4(p + 4, h);
  }
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t*) {
    join_nibbles(p + 16 + b / 2 * 32, b % 2 * 4, low);
  }
};

// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit b of byte v belongs to value v of block b.
struct FileQ5_K {
  static void header(const std::byte* p, RunHeader& h) { FileQ4_K::header(p, h); }
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t* high) {
    join_nibbles(p + 48 + b / 2 * 32, b % 2 * 4, low);
    const __m128i first = fields(load128(p + 16), b, 1), second = fields(load128(p + 32), b, 1);
    high[0] = stack_words<1>(_mm_or_si128(first, _mm_slli_epi16(second, 4)));
  }
};

// 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 sub-scales, d. Each half of 128 values takes 64 nibble bytes
// (blocks 0 and 1 low, 2 and 3 high) and 32 bytes of pairs (block i of the half in bits 2i and 2i+1).
struct FileQ6_K {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p + 208);
    std::memcpy(h.sub, p + 192, 16);
  }
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t* high) {
    const int half = b / 4;
    const int i = b % 4;
    join_nibbles(p + half * 64 + i % 2 * 32, i / 2 * 4, low);
    const std::byte* pairs = p + 128 + half * 32;
    high[0] = stack_words<2>(fields(load128(pairs), 2 * i, 3));
    high[1] = stack_words<2>(fields(load128(pairs + 16), 2 * i, 3));
  }
};

// d, the high two bits of eight 6-bit sub-scales (offset 32), their low nibbles, then 16 bytes of nibbles a block.
struct FileIQ4_XS {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p);
    const unsigned top = half_at(p + 2);
    for (unsigned j = 0; j < 8; ++j)
      h.sub[j] = sub_scale_of_6_bits(static_cast<unsigned>(p[4 + j / 2]) >> (4 * (j % 2)), top >> 2 * j);
  }
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t*) { copy_nibbles(p + 8 + 16 * b, low); }
};

}  // namespace tw::lane::cpu
