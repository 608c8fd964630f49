// Encoders of the blocks with one scale, or one scale and one minimum.

#include <cstring>

#include "gguf/block_fields.h"
#include "gguf/codebooks.h"
#include "gguf/quantize_blocks.h"
#include "gguf/quantize_fit.h"

namespace tw::gguf {
namespace {

// The binary16 scale and the codes with the least weighted error: of the fitted scale and of those that put the extreme
// value on an outermost level, which give back a block that was made with them.
template <class Levels, size_t kValues>
uint16_t encode_one_scale(std::span<const double, kValues> x, const Levels& levels, std::array<int, kValues>& codes) {
  std::array<double, kValues> w;
  importance(x, w);
  const double most = extreme(x);
  uint16_t best = 0;
  double best_error = scaled_error(x, w, levels, 0.0);
  for (double scale : {most / levels.lowest, most / levels.highest, fit_scale<Levels>(x, w, levels)}) {
    const uint16_t rounded = to_f16_finite(scale);
    const double error = scaled_error(x, w, levels, f16_to_f32(rounded));
    if (error >= best_error) continue;
    best = rounded;
    best_error = error;
  }
  encode_scaled(x, levels, f16_to_f32(best), codes.data());
  return best;
}

struct F16Affine {
  uint16_t scale;
  uint16_t offset;
};

F16Affine encode_affine_block(std::span<const double, 32> x, int highest, std::array<int, 32>& codes) {
  std::array<double, 32> w;
  importance(x, w);
  F16Affine best{};
  Affine best_map;
  double best_error = affine_error(x, w, highest, best_map);
  for (Affine map : {span_affine(x, highest), fit_affine(x, w, highest, false)}) {
    const F16Affine rounded{to_f16_finite(map.scale), to_f16_finite(map.offset)};
    const Affine stored{f16_to_f32(rounded.scale), f16_to_f32(rounded.offset)};
    const double error = affine_error(x, w, highest, stored);
    if (error >= best_error) continue;
    best = rounded;
    best_map = stored;
    best_error = error;
  }
  encode_affine(x, highest, best_map, codes.data());
  return best;
}

// Low nibbles of `first` codes, high nibbles of the others.
void pack_nibbles(const int* codes, uint32_t half, uint8_t* qs) {
  for (uint32_t j = 0; j < half; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + half] & 15) << 4);
}

void pack_fifth_bits(const std::array<int, 32>& codes, uint8_t* qh) {
  uint32_t high = 0;
  for (uint32_t j = 0; j < 32; ++j) high |= static_cast<uint32_t>(codes[j] >> 4 & 1) << j;
  store_u32(qh, high);
}

// The E2M1 code of a value in units of the doubled levels; ties to the even code, as in IEEE rounding.
int fp4_code(double t) {
  const double magnitude = std::fabs(t);
  int code = 0;
  for (int k = 0; k < 7; ++k) {
    const double middle = 0.5 * (kFp4Levels[static_cast<size_t>(k)] + kFp4Levels[static_cast<size_t>(k) + 1]);
    code += k % 2 == 0 ? magnitude > middle : magnitude >= middle;
  }
  return code != 0 && t < 0.0 ? code + 8 : code;
}

double fp4_error(std::span<const double> x, double scale) {
  double error = 0.0;
  for (double value : x) {
    const double miss = value - scale * kFp4Levels[static_cast<size_t>(fp4_code(value / scale))];
    error += miss * miss;
  }
  return error;
}

}  // namespace

void encode_block(BlockValues<BlockQ4_0> x, BlockQ4_0& out) {
  std::array<int, 32> codes;
  out.d = encode_one_scale(x, IntegerLevels{-8, 7}, codes);
  for (int& code : codes) code += 8;
  pack_nibbles(codes.data(), 16, out.qs);
}

void encode_block(BlockValues<BlockQ4_1> x, BlockQ4_1& out) {
  std::array<int, 32> codes;
  const F16Affine map = encode_affine_block(x, 15, codes);
  out.d = map.scale;
  out.m = map.offset;
  pack_nibbles(codes.data(), 16, out.qs);
}

void encode_block(BlockValues<BlockQ5_0> x, BlockQ5_0& out) {
  std::array<int, 32> codes;
  out.d = encode_one_scale(x, IntegerLevels{-16, 15}, codes);
  for (int& code : codes) code += 16;
  pack_nibbles(codes.data(), 16, out.qs);
  pack_fifth_bits(codes, out.qh);
}

void encode_block(BlockValues<BlockQ5_1> x, BlockQ5_1& out) {
  std::array<int, 32> codes;
  const F16Affine map = encode_affine_block(x, 31, codes);
  out.d = map.scale;
  out.m = map.offset;
  pack_nibbles(codes.data(), 16, out.qs);
  pack_fifth_bits(codes, out.qh);
}

void encode_block(BlockValues<BlockQ8_0> x, BlockQ8_0& out) {
  std::array<int, 32> codes;
  out.d = to_f16_finite(std::fabs(extreme(x)) / 127.0);
  encode_scaled(x, IntegerLevels{-127, 127}, f16_to_f32(out.d), codes.data());
  for (uint32_t j = 0; j < 32; ++j) out.qs[j] = static_cast<int8_t>(codes[j]);
}

void encode_block(BlockValues<BlockQ8_K> x, BlockQ8_K& out) {
  std::array<int, 256> codes;
  out.d = static_cast<float>(std::fabs(extreme(x)) / 127.0);
  encode_scaled(x, IntegerLevels{-127, 127}, out.d, codes.data());
  for (uint32_t j = 0; j < 256; ++j) out.qs[j] = static_cast<int8_t>(codes[j]);
  for (uint32_t s = 0; s < 16; ++s) {
    int sum = 0;
    for (uint32_t j = 0; j < 16; ++j) sum += codes[16 * s + j];
    out.bsums[s] = static_cast<int16_t>(sum);
  }
}

void encode_block(BlockValues<BlockIQ4_NL> x, BlockIQ4_NL& out) {
  std::array<int, 32> codes;
  out.d = encode_one_scale(x, TableLevels{kIq4Levels}, codes);
  pack_nibbles(codes.data(), 16, out.qs);
}

// The largest exponent with which no value is below half of the range, or the next, whichever errs less: a value
// between 6 and 8 units is cut to 6 by the first and rounded to 6 or 8 by the second, which has coarser small values.
void encode_block(BlockValues<BlockMXFP4> x, BlockMXFP4& out) {
  const double most = std::fabs(extreme(x));
  const int tight = most == 0.0 ? 0 : std::clamp(std::ilogb(most) + 125, 0, 254);
  const int wide = std::min(tight + 1, 254);
  const auto scale = [](int e) { return e8m0_half(static_cast<uint8_t>(e)); };
  const int e = fp4_error(x, scale(wide)) < fp4_error(x, scale(tight)) ? wide : tight;
  std::array<int, 32> codes;
  for (uint32_t j = 0; j < 32; ++j) codes[j] = fp4_code(x[j] / scale(e));
  out.e = static_cast<uint8_t>(e);
  pack_nibbles(codes.data(), 16, out.qs);
}

// The best scale of the octave above the one that just holds the extreme value, and of the one step below it.
void encode_block(BlockValues<BlockNVFP4> x, BlockNVFP4& out) {
  constexpr int kLargest = 0x7e;
  for (uint32_t s = 0; s < 4; ++s) {
    const auto values = x.subspan(16 * s, 16);
    const double wanted = std::fabs(extreme(values)) / 12.0;
    int first = 1;
    while (first < kLargest && ue4m3_half(static_cast<uint8_t>(first)) < wanted) ++first;
    first = std::max(first - 1, 1);
    int best = first;
    double best_error = fp4_error(values, ue4m3_half(static_cast<uint8_t>(first)));
    for (int code = first + 1; code <= std::min(first + 9, kLargest); ++code) {
      const double error = fp4_error(values, ue4m3_half(static_cast<uint8_t>(code)));
      if (error >= best_error) continue;
      best = code;
      best_error = error;
    }
    std::array<int, 16> codes;
    for (uint32_t j = 0; j < 16; ++j) codes[j] = fp4_code(values[j] / ue4m3_half(static_cast<uint8_t>(best)));
    out.d[s] = static_cast<uint8_t>(best);
    pack_nibbles(codes.data(), 8, out.qs + 8 * s);
  }
}

void encode_block(BlockValues<BlockTQ2_0> x, BlockTQ2_0& out) {
  std::array<int, 256> codes;
  out.d = encode_one_scale(x, IntegerLevels{-1, 1}, codes);
  std::memset(out.qs, 0, sizeof out.qs);
  for (uint32_t i = 0; i < 256; ++i) {
    uint8_t& byte = out.qs[32 * (i / 128) + i % 32];
    byte = static_cast<uint8_t>(byte | (codes[i] + 1) << (2 * (i / 32 % 4)));
  }
}

void encode_block(BlockValues<BlockTQ1_0> x, BlockTQ1_0& out) {
  std::array<int, 256> codes;
  out.d = encode_one_scale(x, IntegerLevels{-1, 1}, codes);
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
