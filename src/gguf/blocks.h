#pragma once

// The blocks of the quantized GGUF formats, byte for byte as they lie in a file. Fields named d or dmin of type
// uint16_t are binary16 numbers; every other field is bits, whose meaning stands beside it. Value i of a block belongs
// to run i / 32; decode.h unpacks runs, and docs/formats.md gives the formulas.
//
// Blocks in a file may lie at any address: copy one into a struct before reading its fields.

#include <bit>
#include <cstdint>
#include <tuple>

#include "gguf/format.h"

namespace tw::gguf {

static_assert(std::endian::native == std::endian::little, "blocks are read as they lie in the file: little-endian");

// --- 32 values ------------------------------------------------------------------------------------------------------

// value = d * (nibble - 8)
struct BlockQ4_0 {
  static constexpr Format kFormat = Format::Q4_0;
  static constexpr uint32_t kValues = 32;
  uint16_t d;
  uint8_t qs[16];  // low nibbles: values 0..15, high nibbles: values 16..31
};
static_assert(sizeof(BlockQ4_0) == 18);

// value = d * nibble + m
struct BlockQ4_1 {
  static constexpr Format kFormat = Format::Q4_1;
  static constexpr uint32_t kValues = 32;
  uint16_t d;
  uint16_t m;      // binary16
  uint8_t qs[16];  // as Q4_0
};
static_assert(sizeof(BlockQ4_1) == 20);

// value = d * (nibble + 16 * high bit - 16)
struct BlockQ5_0 {
  static constexpr Format kFormat = Format::Q5_0;
  static constexpr uint32_t kValues = 32;
  uint16_t d;
  uint8_t qh[4];   // bit i of this 32-bit number: high bit of value i
  uint8_t qs[16];  // as Q4_0
};
static_assert(sizeof(BlockQ5_0) == 22);

// value = d * (nibble + 16 * high bit) + m
struct BlockQ5_1 {
  static constexpr Format kFormat = Format::Q5_1;
  static constexpr uint32_t kValues = 32;
  uint16_t d;
  uint16_t m;      // binary16
  uint8_t qh[4];   // as Q5_0
  uint8_t qs[16];  // as Q4_0
};
static_assert(sizeof(BlockQ5_1) == 24);

// value = d * q
struct BlockQ8_0 {
  static constexpr Format kFormat = Format::Q8_0;
  static constexpr uint32_t kValues = 32;
  uint16_t d;
  int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

// value = d * kIq4Levels[nibble]
struct BlockIQ4_NL {
  static constexpr Format kFormat = Format::IQ4_NL;
  static constexpr uint32_t kValues = 32;
  uint16_t d;
  uint8_t qs[16];  // as Q4_0
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// value = 2^(e - 128) * kFp4Levels[nibble], the levels being twice the numbers of E2M1
struct BlockMXFP4 {
  static constexpr Format kFormat = Format::MXFP4;
  static constexpr uint32_t kValues = 32;
  uint8_t e;       // E8M0: a biased power of two
  uint8_t qs[16];  // as Q4_0
};
static_assert(sizeof(BlockMXFP4) == 17);

// --- 64 values ------------------------------------------------------------------------------------------------------

// value = ue4m3(d[i / 16]) / 2 * kFp4Levels[nibble]
struct BlockNVFP4 {
  static constexpr Format kFormat = Format::NVFP4;
  static constexpr uint32_t kValues = 64;
  uint8_t d[4];    // UE4M3: 4 exponent bits (bias 7), 3 mantissa bits, one for each 16 values
  uint8_t qs[32];  // 8 bytes for each 16 values: low nibbles the first 8 of them, high nibbles the other 8
};
static_assert(sizeof(BlockNVFP4) == 36);

// --- 256 values -----------------------------------------------------------------------------------------------------

// value = d * scale(i / 16) * q - dmin * min(i / 16)
struct BlockQ2_K {
  static constexpr Format kFormat = Format::Q2_K;
  static constexpr uint32_t kValues = 256;
  uint8_t scales[16];  // low nibble: scale, high nibble: min
  uint8_t qs[64];      // value i: bits 2 * (run % 4) and up of byte 32 * (i / 128) + i % 32
  uint16_t d;
  uint16_t dmin;
};
static_assert(sizeof(BlockQ2_K) == 84);

// value = d * (scale(i / 16) - 32) * (q + 4 * high bit - 4)
struct BlockQ3_K {
  static constexpr Format kFormat = Format::Q3_K;
  static constexpr uint32_t kValues = 256;
  uint8_t hmask[32];  // high bit of value i: bit `run` of byte i % 32
  uint8_t qs[64];     // as Q2_K
  uint8_t
      scales[12];  // 6-bit scale s: low 4 bits in nibble s / 8 of byte s % 8, high 2 at bit 2 * (s / 4) of 8 + s % 4
  uint16_t d;
};
static_assert(sizeof(BlockQ3_K) == 110);

// value = d * scale(run) * nibble - dmin * min(run)
struct BlockQ4_K {
  static constexpr Format kFormat = Format::Q4_K;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // 6 bits each. Runs 0..3: scale in the low 6 bits of byte run, min of byte 4 + run. Runs 4..7:
                       // low 4 bits of scale and min in the nibbles of byte 4 + run, high 2 atop bytes run - 4 and run
  uint8_t qs[128];     // runs 2p and 2p + 1: low and high nibbles of bytes 32 p .. 32 p + 31
};
static_assert(sizeof(BlockQ4_K) == 144);

// value = d * scale(run) * (nibble + 16 * high bit) - dmin * min(run)
struct BlockQ5_K {
  static constexpr Format kFormat = Format::Q5_K;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // as Q4_K
  uint8_t qh[32];      // high bit of value i: bit `run` of byte i % 32
  uint8_t qs[128];     // as Q4_K
};
static_assert(sizeof(BlockQ5_K) == 176);

// value = d * scale(i / 16) * (nibble + 16 * high two bits - 32)
struct BlockQ6_K {
  static constexpr Format kFormat = Format::Q6_K;
  static constexpr uint32_t kValues = 256;
  uint8_t ql[128];    // value i: byte 64 * (i / 128) + i % 64, low nibble in the first 64 of its 128, else high
  uint8_t qh[64];     // value i: bits 2 * (run % 4) and up of byte 32 * (i / 128) + i % 32
  int8_t scales[16];  // one for each 16 values
  uint16_t d;
};
static_assert(sizeof(BlockQ6_K) == 210);

// value = d * q
struct BlockQ8_K {
  static constexpr Format kFormat = Format::Q8_K;
  static constexpr uint32_t kValues = 256;
  float d;
  int8_t qs[256];
  int16_t bsums[16];  // sums of 16 q each; they follow from qs and decoding ignores them
};
static_assert(sizeof(BlockQ8_K) == 292);

// value = d / 8 * (2 scale(run) + 1) * sign * kIq2XxsGrid[index], 8 values an index
struct BlockIQ2_XXS {
  static constexpr Format kFormat = Format::IQ2_XXS;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint8_t qs[64];  // 8 bytes a run: four indices, then 32 bits: four sign codes of 7 bits and on top 4 bits of scale
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

// value = d / 8 * (2 scale(i / 16) + 1) * sign * kIq2XsGrid[index], 8 values an index
struct BlockIQ2_XS {
  static constexpr Format kFormat = Format::IQ2_XS;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint16_t qs[32];    // one for each 8 values: 9 bits of index, 7 bits of sign code
  uint8_t scales[8];  // a run: low nibble its first 16 values, high nibble the others
};
static_assert(sizeof(BlockIQ2_XS) == 74);

// value = d / 8 * (2 scale(i / 16) + 1) * sign * kIq2SGrid[index], 8 values an index
struct BlockIQ2_S {
  static constexpr Format kFormat = Format::IQ2_S;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint8_t qs[32];     // low 8 bits of the indices
  uint8_t signs[32];  // bit j: value j of the 8 is negative
  uint8_t qh[8];      // a run: high 2 bits of its four indices
  uint8_t scales[8];  // as IQ2_XS
};
static_assert(sizeof(BlockIQ2_S) == 82);

// value = d / 4 * (2 scale(run) + 1) * sign * kIq3XxsGrid[index], 4 values an index
struct BlockIQ3_XXS {
  static constexpr Format kFormat = Format::IQ3_XXS;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint8_t qs[64];                // indices, 8 a run
  uint8_t scales_and_signs[32];  // 32 bits a run, as the second half of an IQ2_XXS run
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

// value = d * (2 scale(run) + 1) * sign * kIq3SGrid[index], 4 values an index
struct BlockIQ3_S {
  static constexpr Format kFormat = Format::IQ3_S;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint8_t qs[64];     // low 8 bits of the indices, 8 a run
  uint8_t qh[8];      // a run: bit k is the high bit of its index k
  uint8_t signs[32];  // bit j: value j of the 8 is negative
  uint8_t scales[4];  // runs 2p and 2p + 1: low and high nibble of byte p
};
static_assert(sizeof(BlockIQ3_S) == 110);

// value = d / 8 * (2 scale(run) + 1) * (8 * kIq1Grid[index] + delta(run)), 8 values an index, delta 1 or -1
struct BlockIQ1_S {
  static constexpr Format kFormat = Format::IQ1_S;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint8_t qs[32];  // low 8 bits of the indices, 4 a run
  uint16_t qh[8];  // a run: high 3 bits of its four indices, 3 bits of scale, top bit set when delta is -1
};
static_assert(sizeof(BlockIQ1_S) == 50);

// value = d / 8 * (2 scale(i / 16) + 1) * (8 * kIq1Grid[index] + delta(i / 8)), 8 values an index, delta 1 or -1
struct BlockIQ1_M {
  static constexpr Format kFormat = Format::IQ1_M;
  static constexpr uint32_t kValues = 256;
  uint8_t qs[32];  // low 8 bits of the indices, 4 a run
  uint8_t qh[16];  // a nibble an index: its high 3 bits, and a bit set when delta is -1
  uint16_t
      scales[4];  // 3 bits for each 16 values, four a word; the top nibbles of the words together are d, a binary16
};
static_assert(sizeof(BlockIQ1_M) == 56);

// value = d * (scale(run) - 32) * kIq4Levels[nibble]
struct BlockIQ4_XS {
  static constexpr Format kFormat = Format::IQ4_XS;
  static constexpr uint32_t kValues = 256;
  uint16_t d;
  uint16_t scales_h;    // bits 2 * run and up: high 2 bits of the run's scale
  uint8_t scales_l[4];  // runs 2p and 2p + 1: low 4 bits of scale in the low and high nibble of byte p
  uint8_t qs[128];      // 16 bytes a run, as Q4_0
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// value = d * (digit - 1). A byte is the fraction byte / 256 in base 3: digit k = floor(3 * (byte * 3^k mod 256) /
// 256), so that five digits n = (0 to 242, first digit the most significant) are stored as ceil(256 n / 243).
struct BlockTQ1_0 {
  static constexpr Format kFormat = Format::TQ1_0;
  static constexpr uint32_t kValues = 256;
  uint8_t qs[48];  // digit k of bytes 0..31: values 32 k + byte; digit k of bytes 32..47: values 160 + 16 k + byte - 32
  uint8_t qh[4];   // digit k (of four): values 240 + 4 k + byte
  uint16_t d;
};
static_assert(sizeof(BlockTQ1_0) == 54);

// value = d * (q - 1)
struct BlockTQ2_0 {
  static constexpr Format kFormat = Format::TQ2_0;
  static constexpr uint32_t kValues = 256;
  uint8_t qs[64];  // as Q2_K
  uint16_t d;
};
static_assert(sizeof(BlockTQ2_0) == 66);

// Every block type once.
using BlockTypes =
    std::tuple<BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, BlockIQ4_NL, BlockMXFP4, BlockNVFP4, BlockQ2_K,
               BlockQ3_K, BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockQ8_K, BlockIQ2_XXS, BlockIQ2_XS, BlockIQ2_S,
               BlockIQ3_XXS, BlockIQ3_S, BlockIQ1_S, BlockIQ1_M, BlockIQ4_XS, BlockTQ1_0, BlockTQ2_0>;

}  // namespace tw::gguf
