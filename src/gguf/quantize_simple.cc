// Encoders of the blocks with one scale, or one scale and one minimum.

#include <cstring>
#include <limits>

#include "gguf/block_fields.h"
#include "gguf/codebooks.h"
#include "gguf/quantize_blocks.h"
#include "gguf/quantize_fit.h"

namespace tw::gguf {
namespace {

// The binary16 scale and the codes with the least weighted error: of the fitted scale and of those that put the extreme
// value on an outermost level, which give back a block that was made with them.
template <class Levels>
uint16_t encode_one_scale(const Normalized& block, const Levels& levels, std::span<int> codes) {
  std::array<float, 256> importances;
  const std::span w = std::span(importances).first(block.x.size());
  importance(block.x, w);
  const double most = extreme(block.x);
  uint16_t best = 0;
  float best_error = std::numeric_limits<float>::infinity();
  for (double scale : {most / levels.lowest, most / levels.highest, fit_scale<Levels>(block.x, w, levels)}) {
    const uint16_t rounded = block.to_f16(scale);
    const float error = scaled_error(block.x, w, levels, block.from_f16(rounded));
    if (error >= best_error) continue;
    best = rounded;
    best_error = error;
  }
  encode_scaled(block.x, levels, block.from_f16(best), codes.data());
  return best;
}

struct F16Affine {
  uint16_t scale;
  uint16_t offset;
};

// The same for a scale and an offset.
F16Affine encode_scale_offset(const Normalized& block, int highest, std::array<int, 32>& codes) {
  std::array<float, 32> w;
  importance(block.x, w);
  F16Affine best{};
  Affine best_map;
  float best_error = std::numeric_limits<float>::infinity();
  for (Affine map : {span_affine(block.x, highest), fit_affine(block.x, w, highest, false)}) {
    const F16Affine rounded{block.to_f16(map.scale), block.to_f16(map.offset)};
    const Affine stored{block.from_f16(rounded.scale), block.from_f16(rounded.offset)};
    const float error = affine_error(block.x, w, highest, stored);
    if (error >= best_error) continue;
    best = rounded;
    best_map = stored;
    best_error = error;
  }
  encode_affine(block.x, highest, best_map, codes.data());
  return best;
}

// The first `half` codes in low nibbles, the others in high ones.
void pack_nibbles(const int* codes, uint32_t half, uint8_t* qs) {
  for (uint32_t j = 0; j < half; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + half] & 15) << 4);
}

void pack_fifth_bits(const std::array<int, 32>& codes, uint8_t* qh) {
  uint32_t high = 0;
  for (uint32_t j = 0; j < 32; ++j) high |= static_cast<uint32_t>(codes[j] >> 4 & 1) << j;
  store_u32(qh, high);
}

// Of equal importance: what FP4 formats scale are blocks of one magnitude.
constexpr std::array<float, 32> kOnes = [] {
  std::array<float, 32> ones{};
  ones.fill(1.0f);
  return ones;
}();

float fp4_error(Floats x, float scale) { return scaled_error(x, Floats(kOnes).first(x.size()), Fp4Levels{}, scale); }

// Integers -127..127 with the least scale that holds the extreme value.
constexpr IntegerLevels kInt8{-127.0f, 127.0f};

}  // namespace

void encode_block(const Normalized& block, BlockQ4_0& out) {
  std::array<int, 32> codes;
  out.d = encode_one_scale(block, IntegerLevels{-8.0f, 7.0f}, codes);
  for (int& code : codes) code += 8;
  pack_nibbles(codes.data(), 16, out.qs);
}

void encode_block(const Normalized& block, BlockQ4_1& out) {
  std::array<int, 32> codes;
  const F16Affine map = encode_scale_offset(block, 15, codes);
  out.d = map.scale;
  out.m = map.offset;
  pack_nibbles(codes.data(), 16, out.qs);
}

void encode_block(const Normalized& block, BlockQ5_0& out) {
  std::array<int, 32> codes;
  out.d = encode_one_scale(block, IntegerLevels{-16.0f, 15.0f}, codes);
  for (int& code : codes) code += 16;
  pack_nibbles(codes.data(), 16, out.qs);
  pack_fifth_bits(codes, out.qh);
}

void encode_block(const Normalized& block, BlockQ5_1& out) {
  std::array<int, 32> codes;
  const F16Affine map = encode_scale_offset(block, 31, codes);
  out.d = map.scale;
  out.m = map.offset;
  pack_nibbles(codes.data(), 16, out.qs);
  pack_fifth_bits(codes, out.qh);
}

void encode_block(const Normalized& block, BlockQ8_0& out) {
  std::array<int, 32> codes;
  out.d = block.to_f16(std::fabs(extreme(block.x)) / 127.0);
  encode_scaled(block.x, kInt8, block.from_f16(out.d), codes.data());
  for (uint32_t j = 0; j < 32; ++j) out.qs[j] = static_cast<int8_t>(codes[j]);
}

void encode_block(const Normalized& block, BlockQ8_K& out) {
  std::array<int, 256> codes;
  constexpr float kMost = std::numeric_limits<float>::max() / 128.0f;  // with which 127 d is finite
  out.d = std::min(static_cast<float>(std::ldexp(std::fabs(extreme(block.x)) / 127.0, block.exponent)), kMost);
  encode_scaled(block.x, kInt8, std::ldexp(out.d, -block.exponent), codes.data());
  for (uint32_t j = 0; j < 256; ++j) out.qs[j] = static_cast<int8_t>(codes[j]);
  for (uint32_t s = 0; s < 16; ++s) {
    int sum = 0;
    for (uint32_t j = 0; j < 16; ++j) sum += codes[16 * s + j];
    out.bsums[s] = static_cast<int16_t>(sum);
  }
}

void encode_block(const Normalized& block, BlockIQ4_NL& out) {
  std::array<int, 32> codes;
  out.d = encode_one_scale(block, Iq4Levels{}, codes);
  pack_nibbles(codes.data(), 16, out.qs);
}

// The exponent with which the extreme value lies between 4 and 8 units, or the next, whichever errs less: the first
// cuts what is above 6 to 6, the second has small values half as fine.
void encode_block(const Normalized& block, BlockMXFP4& out) {
  constexpr int kLargest = 252;  // with which the largest level is finite in binary32
  const auto scale = [&](int e) { return std::ldexp(e8m0_half(static_cast<uint8_t>(e)), -block.exponent); };
  const int tight = extreme(block.x) == 0.0f ? 0 : std::clamp(block.exponent + 125, 0, kLargest);
  const int wide = std::min(tight + 1, kLargest);
  const int e = fp4_error(block.x, scale(wide)) < fp4_error(block.x, scale(tight)) ? wide : tight;
  std::array<int, 32> codes;
  encode_scaled(block.x, Fp4Levels{}, scale(e), codes.data());
  out.e = static_cast<uint8_t>(e);
  pack_nibbles(codes.data(), 16, out.qs);
}

// The best scale of the octave above the one that just holds the extreme value, and of the one step below it.
void encode_block(const Normalized& block, BlockNVFP4& out) {
  constexpr int kLargest = 0x7e;
  const auto scale = [&](int code) { return std::ldexp(ue4m3_half(static_cast<uint8_t>(code)), -block.exponent); };
  for (uint32_t s = 0; s < 4; ++s) {
    const Floats x = block.x.subspan(16 * s, 16);
    const float wanted = std::fabs(extreme(x)) / 12.0f;
    int first = 1;
    while (first < kLargest && scale(first) < wanted) ++first;
    first = std::max(first - 1, 1);
    int best = first;
    float best_error = fp4_error(x, scale(first));
    for (int code = first + 1; code <= std::min(first + 9, kLargest); ++code) {
      const float error = fp4_error(x, scale(code));
      if (error >= best_error) continue;
      best = code;
      best_error = error;
    }
    std::array<int, 16> codes;
    encode_scaled(x, Fp4Levels{}, scale(best), codes.data());
    out.d[s] = static_cast<uint8_t>(best);
    pack_nibbles(codes.data(), 8, out.qs + 8 * s);
  }
}

void encode_block(const Normalized& block, BlockTQ2_0& out) {
  std::array<int, 256> codes;
  out.d = encode_one_scale(block, IntegerLevels{-1.0f, 1.0f}, codes);
  std::memset(out.qs, 0, sizeof out.qs);
  for (uint32_t i = 0; i < 256; ++i) {
    uint8_t& byte = out.qs[32 * (i / 128) + i % 32];
    byte = static_cast<uint8_t>(byte | (codes[i] + 1) << (2 * (i / 32 % 4)));
  }
}

void encode_block(const Normalized& block, BlockTQ1_0& out) {
  std::array<int, 256> codes;
  out.d = encode_one_scale(block, IntegerLevels{-1.0f, 1.0f}, codes);
  // The number with the digits at first, first + stride, ... as a fraction of 256, rounded up; missing digits are 0.
  const auto pack = [&](uint32_t first, uint32_t stride, uint32_t digits) {
    int number = 0;
    for (uint32_t k = 0; k < 5; ++k) number = 3 * number + (k < digits ? codes[first + k * stride] + 1 : 0);
    return static_cast<uint8_t>((number * 256 + 242) / 243);
  };
  for (uint32_t j = 0; j < 32; ++j) out.qs[j] = pack(j, 32, 5);
  for (uint32_t j = 0; j < 16; ++j) out.qs[32 + j] = pack(160 + j, 16, 5);
  for (uint32_t j = 0; j < 4; ++j) out.qh[j] = pack(240 + j, 4, 4);
}

}  // namespace tw::gguf
