#pragma once

// How weights lie in memory when kernels read them. Shared by the packer and by every instruction set's kernels, so
// plain constants only.
//
// A packed matrix is cut into panels of 16 outputs, so that a SIMD lane is an output. A panel of a quantized format is
// a chain of runs (one file block or super-block of each of its 16 rows), and a run is
//   d[16]?, min[16]?, sub[subs][16]?, sub_min[sub_mins][16]?, then per block of 32 values
//   low[low_words][16] and high[high_words][16], 32-bit words.
// Word g of row r holds values 4g..4g+3 of the block, a byte each. Where low_words is 4, a byte's low nibble belongs to
// group g and its high nibble to group g + 4; where it is 2, bits 2g and 2g+1 of byte j of word 0 (1) belong to value
// 4g+j (16+4g+j). Further bits lie in the high words: with one word, bit g of byte j is the next bit of value 4g+j;
// with two, bits 2g and 2g+1 of byte j of word 0 (1) are bits 4 and 5 of value 4g+j (16+4g+j).
// Rows past the last output are zero in every field.
//
// A format whose file holds indices of a grid is packed as the places of its values in the list of those that the grid
// has: 2 bits (IQ1), 3 (IQ2) or 4 (IQ3). That is 0.75 to 1.3 bits a weight more than in the file, and reads without a
// gather; TQ1_0's five digits a byte become 2 bits each.

#include <cstddef>
#include <cstdint>

#include "gguf/format.h"

namespace tw::lane::cpu {

inline constexpr uint32_t kPanel = 16;          // outputs a panel
inline constexpr uint32_t kBlock = 32;          // values a block: one scale of the activation
inline constexpr uint32_t kSegmentBlocks = 16;  // blocks a segment of a quantized product's chain: CC(16 blocks)
inline constexpr uint32_t kFloatSegment = 64;   // values a segment of a floating-point product's chain: CC(64)
inline constexpr size_t kPackAlign = 64;        // alignment of a packed matrix

enum class Layout : uint8_t {
  None,  // not a weight format
  F32,   // [k][16] values of the panel in their own type
  F16,
  BF16,
  Q8_0,  // runs, from here on
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  IQ4_NL,
  MXFP4,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_XS,
  Q2_K,
  Q3_K,
  Q8_K,
  NVFP4,
  TQ2_0,  // and TQ1_0
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,  // and IQ2_S
  IQ3_XXS,
  IQ3_S,
};
inline constexpr int kFirstRunLayout = static_cast<int>(Layout::Q8_0);
inline constexpr int kRunLayouts = static_cast<int>(Layout::IQ3_S) - kFirstRunLayout + 1;

// What a block adds to a chain `a` (docs/numerics.md, "Products"): D its scale, d the activation's, S and X the exact
// integer sums of weight times activation and of the activation, S0 S1 X0 X1 those of its halves.
// The same kinds in the same order as gguf::RunForm.
enum class Term : uint8_t {
  Scale,      // a = fma(D d, S, a)
  ScaleMin,   // then a = fma(-(M d), X, a)
  Halves,     // a = fma(D d, s0 S0 + s1 S1, a)
  HalvesMin,  // then a = fma(-(M d), m0 X0 + m1 X1, a)
  TwoScales,  // a = fma(D0 d, S0, a), then a = fma(D1 d, S1, a)
};

enum class ScaleType : uint8_t {
  F16,
  F16Quarter,  // d / 4
  F16Eighth,   // d / 8
  F32,
  E8M0Half,  // 2^(e - 128)
  None,      // the sub-scales are the scales
};
enum class Subs : uint8_t {
  Signed,    // signed bytes
  Nibbles,   // low nibbles of bytes; their high ones are sub-minima, or the offsets of Codes::Ternary
  E4M3Half,  // half of a number of E4M3 without a sign
};
enum class Codes : uint8_t {
  Bytes,
  Bits,
  Doubled,  // 2 code
  Ternary,  // 8 code + 2 offset, an offset of 0 or 1 for the block (bit 4 of its sub-scale's byte), or for each 8
            // values (bits 4 and 5 of the sub-scale of each half)
  Table,    // table[code]
};

struct RunShape {
  uint8_t blocks;      // blocks a run
  ScaleType scale;     // d
  bool min;            // there is an f16 minimum
  bool add_min;        // the minimum is added (Q4_1), not subtracted (K-quants)
  uint8_t subs;        // bytes of sub-scales a block
  uint8_t sub_mins;    // unsigned 8-bit sub-minima a block
  uint8_t low_words;   // 8: bytes; 4: nibbles; 2: pairs of bits
  uint8_t high_words;  // 0; 1: one more bit; 2: two more
  Codes codes;         // how codes become integers
  int32_t offset;      // integer = code - offset
  int32_t max;         // the largest code when codes are unsigned; 0: codes are signed bytes
  Subs sub_type = Subs::Signed;
  const uint8_t* table = nullptr;  // 16 values

  [[nodiscard]] constexpr uint32_t scale_bytes() const {
    switch (scale) {
      case ScaleType::None: return 0;
      case ScaleType::E8M0Half: return 1;
      case ScaleType::F32: return 4;
      default: return 2;
    }
  }
  [[nodiscard]] constexpr Term term() const {
    if (sub_type == Subs::E4M3Half) return Term::TwoScales;
    if (subs == 2) return min ? Term::HalvesMin : Term::Halves;
    return min ? Term::ScaleMin : Term::Scale;
  }
  [[nodiscard]] constexpr uint32_t min_at() const { return kPanel * scale_bytes(); }
  [[nodiscard]] constexpr uint32_t subs_at() const { return min_at() + (min ? kPanel * 2 : 0); }
  [[nodiscard]] constexpr uint32_t sub_mins_at() const { return subs_at() + kPanel * subs * blocks; }
  [[nodiscard]] constexpr uint32_t blocks_at() const { return sub_mins_at() + kPanel * sub_mins * blocks; }
  [[nodiscard]] constexpr uint32_t block_bytes() const { return kPanel * 4U * (low_words + high_words); }
  [[nodiscard]] constexpr uint32_t bytes() const { return blocks_at() + blocks * block_bytes(); }
  [[nodiscard]] constexpr uint32_t values() const { return blocks * kBlock; }
};

// The 16 values of an IQ4 code and of an FP4 code (twice E2M1) as signed bytes, and those of an FP4 code raised by 12
// to be unsigned.
inline constexpr uint8_t kIq4Values[16] = {129, 152, 173, 191, 207, 221, 234, 246, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr uint8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, 255, 254, 253, 252, 250, 248, 244};
inline constexpr uint8_t kMxfp4Values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
// The values of the IQ2 and IQ3_XXS grids, then the same negated, raised by the largest.
inline constexpr uint8_t kIq2Values[16] = {51, 68, 86, 0, 35, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
inline constexpr uint8_t kIq3XxsValues[16] = {66, 74, 82, 90, 98, 106, 114, 124, 58, 50, 42, 34, 26, 18, 10, 0};

// In the order of Layout, from Q8_0 on.
inline constexpr RunShape kRunShapes[kRunLayouts] = {
    // blocks, scale, min, add_min, subs, sub_mins, low, high, codes, offset, max, sub_type, table
    {1, ScaleType::F16, false, false, 0, 0, 8, 0, Codes::Bytes, 0, 0},                                     // Q8_0
    {1, ScaleType::F16, false, false, 0, 0, 4, 0, Codes::Bits, 8, 15},                                     // Q4_0
    {1, ScaleType::F16, true, true, 0, 0, 4, 0, Codes::Bits, 0, 15},                                       // Q4_1
    {1, ScaleType::F16, false, false, 0, 0, 4, 1, Codes::Bits, 16, 31},                                    // Q5_0
    {1, ScaleType::F16, true, true, 0, 0, 4, 1, Codes::Bits, 0, 31},                                       // Q5_1
    {1, ScaleType::F16, false, false, 0, 0, 4, 0, Codes::Table, 0, 0, Subs::Signed, kIq4Values},           // IQ4_NL
    {1, ScaleType::E8M0Half, false, false, 0, 0, 4, 0, Codes::Table, 12, 24, Subs::Signed, kMxfp4Values},  // MXFP4
    {8, ScaleType::F16, true, false, 1, 1, 4, 0, Codes::Bits, 0, 15},                                      // Q4_K
    {8, ScaleType::F16, true, false, 1, 1, 4, 1, Codes::Bits, 0, 31},                                      // Q5_K
    {8, ScaleType::F16, false, false, 2, 0, 4, 2, Codes::Bits, 32, 63},                                    // Q6_K
    {8, ScaleType::F16, false, false, 1, 0, 4, 0, Codes::Table, 0, 0, Subs::Signed, kIq4Values},           // IQ4_XS
    {8, ScaleType::F16, true, false, 2, 0, 2, 0, Codes::Bits, 0, 3, Subs::Nibbles},                        // Q2_K
    {8, ScaleType::F16, false, false, 2, 0, 2, 1, Codes::Bits, 4, 7},                                      // Q3_K
    {8, ScaleType::F32, false, false, 0, 0, 8, 0, Codes::Bytes, 0, 0},                                     // Q8_K
    {2, ScaleType::None, false, false, 2, 0, 4, 0, Codes::Table, 0, 0, Subs::E4M3Half, kFp4Values},        // NVFP4
    {8, ScaleType::F16, false, false, 0, 0, 2, 0, Codes::Bits, 1, 2},                                      // TQ2_0
    {8, ScaleType::F16Eighth, false, false, 1, 0, 2, 0, Codes::Ternary, 9, 18, Subs::Nibbles},             // IQ1_S
    {8, ScaleType::F16Eighth, false, false, 2, 0, 2, 0, Codes::Ternary, 9, 18, Subs::Nibbles},             // IQ1_M
    {8, ScaleType::F16Eighth, false, false, 1, 0, 2, 1, Codes::Table, 43, 86, Subs::Signed, kIq2Values},   // IQ2_XXS
    {8, ScaleType::F16Eighth, false, false, 2, 0, 2, 1, Codes::Table, 43, 86, Subs::Signed, kIq2Values},   // IQ2_XS
    {8, ScaleType::F16Quarter, false, false, 1, 0, 4, 0, Codes::Table, 62, 124, Subs::Signed,
     kIq3XxsValues},                                                        // IQ3_XXS
    {8, ScaleType::F16, false, false, 1, 0, 4, 0, Codes::Doubled, 15, 30},  // IQ3_S
};
constexpr bool is_run(Layout layout) { return static_cast<int>(layout) >= kFirstRunLayout; }
constexpr bool is_float(Layout layout) {
  return layout == Layout::F32 || layout == Layout::F16 || layout == Layout::BF16;
}
constexpr const RunShape& run_shape(Layout layout) { return kRunShapes[static_cast<int>(layout) - kFirstRunLayout]; }

// A stack of `groups` matrices (experts, heads; 1 for a plain matrix), each of n outputs by k inputs. Every group
// begins a panel of its own. (pack.h describes one; its functions are compiled for every machine.)
struct Packed {
  gguf::Format format = gguf::Format::F32;
  Layout layout = Layout::F32;
  Term term = Term::Scale;  // of quantized formats
  uint64_t groups = 1;
  uint64_t n = 0;
  uint64_t k = 0;
  const std::byte* data = nullptr;

  [[nodiscard]] uint64_t group_panels() const;
  [[nodiscard]] uint64_t panels() const;
  // Bytes from one panel to the next.
  [[nodiscard]] uint64_t panel_bytes() const;
  // Where panel `index` of all begins.
  [[nodiscard]] uint64_t panel_offset(uint64_t index) const;
  [[nodiscard]] uint64_t bytes() const;
};

}  // namespace tw::lane::cpu
