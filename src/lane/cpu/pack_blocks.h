#pragma once

// File blocks taken apart into the fields of a run (pack_layout.h). One struct a format: header() reads the scales of a
// file block, words() the codes of its b-th 32 values. Words are combined four bytes a time; a file's byte order is
// little-endian, and so is the word order here.

#include <bit>
#include <cstdint>
#include <cstring>

#include "lane/cpu/pack_layout.h"

namespace tw::lane::cpu {

static_assert(std::endian::native == std::endian::little, "packed words are little-endian");

struct RunHeader {
  uint16_t scale = 0;  // f16, or e8m0 in the low byte
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

// Formats whose 32 bytes hold 32 values in one nibble of each, chosen by `shift`.
inline void join_nibbles(const std::byte* bytes, unsigned shift, uint32_t* low) {
  for (int g = 0; g < 4; ++g) {
    const uint32_t first = word_at(bytes + 4 * g) >> shift & 0x0f0f0f0fU;
    const uint32_t second = word_at(bytes + 16 + 4 * g) >> shift & 0x0f0f0f0fU;
    low[g] = first | second << 4;
  }
}

// The 6-bit scale and minimum of sub-block j of Q4_K and Q5_K.
inline void sub_scales_k4(const std::byte* packed, RunHeader& header) {
  const auto* q = reinterpret_cast<const uint8_t*>(packed);
  for (int j = 0; j < 4; ++j) {
    header.sub[j] = static_cast<int8_t>(q[j] & 63);
    header.sub_min[j] = static_cast<uint8_t>(q[j + 4] & 63);
    header.sub[j + 4] = static_cast<int8_t>((q[j + 8] & 15) | (q[j] >> 6) << 4);
    header.sub_min[j + 4] = static_cast<uint8_t>((q[j + 8] >> 4) | (q[j + 4] >> 6) << 4);
  }
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
    join_nibbles(p + 16 + b / 2 * 32, b % 2 * 4U, low);
  }
};

// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit b of byte v belongs to value v of block b.
struct FileQ5_K {
  static void header(const std::byte* p, RunHeader& h) { FileQ4_K::header(p, h); }
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t* high) {
    join_nibbles(p + 48 + b / 2 * 32, b % 2 * 4U, low);
    high[0] = 0;
    for (int g = 0; g < 8; ++g) high[0] |= (word_at(p + 16 + 4 * g) >> b & 0x01010101U) << g;
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
    join_nibbles(p + half * 64 + i % 2 * 32, i / 2 * 4U, low);
    high[0] = high[1] = 0;
    for (int g = 0; g < 4; ++g) {
      const std::byte* pairs = p + 128 + half * 32 + 4 * g;
      high[0] |= (word_at(pairs) >> 2 * i & 0x03030303U) << 2 * g;
      high[1] |= (word_at(pairs + 16) >> 2 * i & 0x03030303U) << 2 * g;
    }
  }
};

// d, the high two bits of eight 6-bit sub-scales (offset 32), their low nibbles, then 16 bytes of nibbles a block.
struct FileIQ4_XS {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p);
    const unsigned top = half_at(p + 2);
    for (unsigned j = 0; j < 8; ++j) {
      const unsigned low = static_cast<unsigned>(p[4 + j / 2]) >> (4 * (j % 2)) & 15U;
      h.sub[j] = static_cast<int8_t>(static_cast<int>(low | (top >> 2 * j & 3U) << 4) - 32);
    }
  }
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t*) { copy_nibbles(p + 8 + 16 * b, low); }
};

}  // namespace tw::lane::cpu
