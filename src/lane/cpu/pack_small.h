#pragma once

// File blocks of the small formats (grids, ternary digits, 2 and 3 bits) and of NVFP4 and Q8_K, taken apart as in
// pack_blocks.h. Codes come from the integers that gguf::decode_run gives.

#include "gguf/decode.h"
#include "lane/cpu/pack_blocks.h"

namespace tw::lane::cpu {

template <class Block>
Block block_at(const std::byte* p) {
  Block block;
  std::memcpy(&block, p, sizeof block);
  return block;
}

// The codes of a block's b-th 32 integers, kBits bits each, in the words of pack_layout.h.
template <class B, int kBits, int (*kCode)(int)>
struct FileCodes {
  using Block = B;
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t* high) {
    gguf::IntRun run;
    gguf::decode_run(block_at<Block>(p), static_cast<uint32_t>(b), run);
    for (int w = 0; w < (kBits == 4 ? 4 : 2); ++w) low[w] = 0;
    if constexpr (kBits == 3) high[0] = 0;
    for (uint32_t v = 0; v < kBlock; ++v) {
      const auto c = static_cast<uint32_t>(kCode(int{run.q[v]}));
      const uint32_t byte = 8 * (v % 4), group = v / 4;
      if constexpr (kBits == 4) {
        low[group % 4] |= c << (byte + group / 4 * 4);
      } else {
        low[group / 4] |= (c & 3) << (byte + 2 * (group % 4));
        if constexpr (kBits == 3) high[0] |= c >> 2 << (byte + group);
      }
    }
  }
};

template <int kOffset>
inline int raised(int q) {
  return q + kOffset;
}
// The digit of 8 g + 1 or 8 g - 1, g from -1 to 1.
inline int iq1_code(int q) { return (q + 9) / 8; }
// The place of 8, 25 or 43, past 4 when negative.
inline int iq2_code(int q) {
  const int magnitude = q < 0 ? -q : q;
  return (magnitude > 8 ? 1 : 0) + (magnitude > 25 ? 1 : 0) + (q < 0 ? 4 : 0);
}
// Of magnitudes 4, 12, ... 52, 62, past 8 when negative.
inline int iq3_xxs_code(int q) { return q < 0 ? 8 + (-q - 4) / 8 : (q - 4) / 8; }
inline int iq3_s_code(int q) { return (q + 15) / 2; }

struct FileQ2_K : FileCodes<gguf::BlockQ2_K, 2, raised<0>> {
  static void header(const std::byte* p, RunHeader& h) {
    const auto block = block_at<Block>(p);
    h.scale = block.d;
    h.min = block.dmin;
    std::memcpy(h.sub, block.scales, sizeof block.scales);
  }
};

struct FileQ3_K : FileCodes<gguf::BlockQ3_K, 3, raised<4>> {
  static void header(const std::byte* p, RunHeader& h) {
    const auto block = block_at<Block>(p);
    h.scale = block.d;
    for (unsigned s = 0; s < 16; ++s) {
      const auto low = static_cast<unsigned>(block.scales[s % 8]), top = static_cast<unsigned>(block.scales[8 + s % 4]);
      h.sub[s] = sub_scale_of_6_bits(low >> (4 * (s / 8)), top >> (2 * (s / 4)));
    }
  }
};

struct FileQ8_K {
  static void header(const std::byte* p, RunHeader& h) { h.scale = word_at(p); }
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t*) { std::memcpy(low, p + 4 + 32 * b, 32); }
};

// Scales without the bit that is not part of them; 0x7f is read as 0.
struct FileNVFP4 {
  static void header(const std::byte* p, RunHeader& h) {
    for (int s = 0; s < 4; ++s) {
      const auto scale = static_cast<uint8_t>(p[s]);
      h.sub[s] = static_cast<int8_t>(scale == 0x7f ? 0 : scale & 0x7f);
    }
  }
  // 8 bytes for each 16 values, the low nibbles first.
  static void words(const std::byte* p, int b, uint32_t* low, uint32_t*) {
    const std::byte* bytes = p + 4 + 16 * b;
    for (int g = 0; g < 4; ++g) {
      const int shift = g / 2 * 4;
      const uint32_t first = word_at(bytes + 4 * (g % 2)) >> shift & 0x0f0f0f0fU;
      const uint32_t second = word_at(bytes + 8 + 4 * (g % 2)) >> shift & 0x0f0f0f0fU;
      low[g] = first | second << 4;
    }
  }
};

template <class B>
struct FileTernary : FileCodes<B, 2, raised<1>> {
  static void header(const std::byte* p, RunHeader& h) { h.scale = block_at<B>(p).d; }
};

// The low nibble: 2 scale + 1; above it the offsets, 1 where 1 is added to eight times the digit, 0 where it is taken
// off.
inline int8_t ternary_sub(uint32_t scale, uint32_t offsets) {
  return static_cast<int8_t>((2 * (scale & 7) + 1) | offsets << 4);
}

struct FileIQ1_S : FileCodes<gguf::BlockIQ1_S, 2, iq1_code> {
  static void header(const std::byte* p, RunHeader& h) {
    const auto block = block_at<Block>(p);
    h.scale = block.d;
    for (int b = 0; b < 8; ++b) {
      const uint32_t bits = block.qh[b];
      h.sub[b] = ternary_sub(bits >> 12, bits >> 15 ^ 1U);
    }
  }
};

struct FileIQ1_M : FileCodes<gguf::BlockIQ1_M, 2, iq1_code> {
  static void header(const std::byte* p, RunHeader& h) {
    const auto block = block_at<Block>(p);
    h.scale = 0;
    for (unsigned w = 0; w < 4; ++w) h.scale |= static_cast<uint32_t>(block.scales[w] >> 12) << (4 * w);
    for (unsigned s = 0; s < 16; ++s) {
      const uint32_t signs = block.qh[s];  // bits 3 and 7
      const uint32_t offsets = (signs >> 3 & 1U) | (signs >> 7 & 1U) << 1;
      h.sub[s] = ternary_sub(static_cast<uint32_t>(block.scales[s / 4]) >> (3 * (s % 4)), offsets ^ 3U);
    }
  }
};

inline int8_t odd(uint32_t scale) { return static_cast<int8_t>(2 * (scale & 15) + 1); }

// The top 4 bits of the second word of each run's 8 bytes.
struct FileIQ2_XXS : FileCodes<gguf::BlockIQ2_XXS, 3, iq2_code> {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p);
    for (int b = 0; b < 8; ++b) h.sub[b] = odd(word_at(p + 2 + 8 * b + 4) >> 28);
  }
};

template <class B>  // IQ2_XS, IQ2_S
struct FileIQ2Halves : FileCodes<B, 3, iq2_code> {
  static void header(const std::byte* p, RunHeader& h) {
    const auto block = block_at<B>(p);
    h.scale = block.d;
    for (int b = 0; b < 8; ++b) {
      h.sub[2 * b] = odd(block.scales[b]);
      h.sub[2 * b + 1] = odd(static_cast<uint32_t>(block.scales[b]) >> 4);
    }
  }
};

struct FileIQ3_XXS : FileCodes<gguf::BlockIQ3_XXS, 4, iq3_xxs_code> {
  static void header(const std::byte* p, RunHeader& h) {
    h.scale = half_at(p);
    for (int b = 0; b < 8; ++b) h.sub[b] = odd(word_at(p + 66 + 4 * b) >> 28);
  }
};

struct FileIQ3_S : FileCodes<gguf::BlockIQ3_S, 4, iq3_s_code> {
  static void header(const std::byte* p, RunHeader& h) {
    const auto block = block_at<Block>(p);
    h.scale = block.d;
    for (unsigned b = 0; b < 8; ++b) h.sub[b] = odd(static_cast<uint32_t>(block.scales[b / 2]) >> (4 * (b % 2)));
  }
};

}  // namespace tw::lane::cpu
