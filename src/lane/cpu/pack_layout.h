#pragma once

// How weights lie in memory when kernels read them. Shared by the packer and by every instruction set's kernels, so
// plain constants only.
//
// A packed matrix is cut into panels of 16 outputs, so that a SIMD lane is an output. A panel of a quantized format is
// a chain of runs (one file block or super-block of each of its 16 rows), and a run is
//   d[16], min[16]?, sub[subs][16]?, sub_min[sub_mins][16]?, then per block of 32 values
//   low[low_words][16] and high[high_words][16], 32-bit words.
// Word g of row r holds values 4g..4g+3 of the block, a byte each. Where low_words is 4, a byte's low nibble belongs to
// group g and its high nibble to group g + 4. Further bits lie in the high words: with one word, bit g of byte j is
// bit 4 of value 4g+j; with two, bits 2g and 2g+1 of byte j of word 0 (1) are bits 4 and 5 of value 4g+j (16+4g+j).
// Rows past the last output are zero in every field.

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
  Rows,  // file rows as they lie, decoded a segment at a time
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
};
inline constexpr int kFirstRunLayout = static_cast<int>(Layout::Q8_0);
inline constexpr int kRunLayouts = static_cast<int>(Layout::IQ4_XS) - kFirstRunLayout + 1;

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

enum class ScaleType : uint8_t { F16, E8M0Half };  // E8M0Half: 2^(e - 128)
enum class Codes : uint8_t { Bytes, Bits, Iq4, Mxfp4 };

struct RunShape {
  uint8_t blocks;      // blocks a run
  ScaleType scale;     // d
  bool min;            // there is an f16 minimum
  bool add_min;        // the minimum is added (Q4_1), not subtracted (K-quants)
  uint8_t subs;        // signed 8-bit sub-scales a block
  uint8_t sub_mins;    // unsigned 8-bit sub-minima a block
  uint8_t low_words;   // 8: bytes; 4: nibbles
  uint8_t high_words;  // 0; 1: a fifth bit; 2: a fifth and a sixth
  Codes codes;         // how codes become integers
  int32_t offset;      // integer = code - offset
  int32_t max;         // the largest code when codes are unsigned; 0: codes are signed bytes

  [[nodiscard]] constexpr uint32_t scale_bytes() const { return scale == ScaleType::F16 ? 2 : 1; }
  [[nodiscard]] constexpr uint32_t min_at() const { return kPanel * scale_bytes(); }
  [[nodiscard]] constexpr uint32_t subs_at() const { return min_at() + (min ? kPanel * 2 : 0); }
  [[nodiscard]] constexpr uint32_t sub_mins_at() const { return subs_at() + kPanel * subs * blocks; }
  [[nodiscard]] constexpr uint32_t blocks_at() const { return sub_mins_at() + kPanel * sub_mins * blocks; }
  [[nodiscard]] constexpr uint32_t block_bytes() const { return kPanel * 4U * (low_words + high_words); }
  [[nodiscard]] constexpr uint32_t bytes() const { return blocks_at() + blocks * block_bytes(); }
  [[nodiscard]] constexpr uint32_t values() const { return blocks * kBlock; }
};

// In the order of Layout, from Q8_0 on.
inline constexpr RunShape kRunShapes[kRunLayouts] = {
    // blocks, scale, min, add_min, subs, sub_mins, low, high, codes, offset, max
    {1, ScaleType::F16, false, false, 0, 0, 8, 0, Codes::Bytes, 0, 0},         // Q8_0
    {1, ScaleType::F16, false, false, 0, 0, 4, 0, Codes::Bits, 8, 15},         // Q4_0
    {1, ScaleType::F16, true, true, 0, 0, 4, 0, Codes::Bits, 0, 15},           // Q4_1
    {1, ScaleType::F16, false, false, 0, 0, 4, 1, Codes::Bits, 16, 31},        // Q5_0
    {1, ScaleType::F16, true, true, 0, 0, 4, 1, Codes::Bits, 0, 31},           // Q5_1
    {1, ScaleType::F16, false, false, 0, 0, 4, 0, Codes::Iq4, 0, 0},           // IQ4_NL
    {1, ScaleType::E8M0Half, false, false, 0, 0, 4, 0, Codes::Mxfp4, 12, 24},  // MXFP4
    {8, ScaleType::F16, true, false, 1, 1, 4, 0, Codes::Bits, 0, 15},          // Q4_K
    {8, ScaleType::F16, true, false, 1, 1, 4, 1, Codes::Bits, 0, 31},          // Q5_K
    {8, ScaleType::F16, false, false, 2, 0, 4, 2, Codes::Bits, 32, 63},        // Q6_K
    {8, ScaleType::F16, false, false, 1, 0, 4, 0, Codes::Iq4, 0, 0},           // IQ4_XS
};
constexpr bool is_run(Layout layout) { return static_cast<int>(layout) >= kFirstRunLayout; }
constexpr bool is_float(Layout layout) {
  return layout == Layout::F32 || layout == Layout::F16 || layout == Layout::BF16;
}
constexpr const RunShape& run_shape(Layout layout) { return kRunShapes[static_cast<int>(layout) - kFirstRunLayout]; }

// The 16 values of an IQ4 code as signed bytes, and those of an MXFP4 code doubled and raised by 12 to be unsigned.
inline constexpr uint8_t kIq4Values[16] = {129, 152, 173, 191, 207, 221, 234, 246, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr uint8_t kMxfp4Values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

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
  // Bytes from one panel to the next; of Layout::Rows, of a full one.
  [[nodiscard]] uint64_t panel_bytes() const;
  // Where panel `index` of all begins.
  [[nodiscard]] uint64_t panel_offset(uint64_t index) const;
  [[nodiscard]] uint64_t bytes() const;
};

}  // namespace tw::lane::cpu
