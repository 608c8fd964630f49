// Encoders of the super-blocks: 256 values in parts of 16 or 32, a small integer scale (and minimum) a part, and
// binary16 units for these integers.
//
// Each part is fitted alone; the units follow from the largest part; then every part takes the stored integers, among
// the neighbours of the rounded ones, that leave the least error with the units as they are stored.

#include <cstring>

#include "gguf/block_fields.h"
#include "gguf/codebooks.h"
#include "gguf/quantize_blocks.h"
#include "gguf/quantize_fit.h"

namespace tw::gguf {
namespace {

constexpr uint32_t kValues = 256;
using Values = std::span<const double, kValues>;

// value = d * scale[part] * level(code)
template <uint32_t kParts>
struct Scaled {
  uint16_t d = 0;
  std::array<int, kParts> scale{};
  std::array<int, kValues> codes{};
};

template <uint32_t kParts, class Levels>
Scaled<kParts> encode_parts(Values x, const Levels& levels, IntegerLevels scales) {
  constexpr uint32_t kPart = kValues / kParts;
  std::array<double, kValues> w;
  importance(x, w);
  std::array<double, kParts> fitted;
  const auto part = [](auto& all, uint32_t p) { return std::span(all).subspan(kPart * p, kPart); };
  for (uint32_t p = 0; p < kParts; ++p) fitted[p] = fit_scale<Levels>(part(x, p), part(w, p), levels);

  Scaled<kParts> out;
  out.d = to_f16_finite(extreme(fitted) / scales.lowest);
  const double d = f16_to_f32(out.d);
  const double inverse = d == 0.0 ? 0.0 : 1.0 / d;
  for (uint32_t p = 0; p < kParts; ++p) {
    const int middle = scales.code(fitted[p] * inverse);
    double least = scaled_error<Levels>(part(x, p), part(w, p), levels, d * middle);
    out.scale[p] = middle;
    for (int scale : {middle - 1, middle + 1}) {
      if (scale < scales.lowest || scale > scales.highest) continue;
      const double error = scaled_error<Levels>(part(x, p), part(w, p), levels, d * scale);
      if (error >= least) continue;
      least = error;
      out.scale[p] = scale;
    }
    encode_scaled<Levels>(part(x, p), levels, d * out.scale[p], &out.codes[kPart * p]);
  }
  return out;
}

// value = d * scale[part] * code - dmin * min[part]
template <uint32_t kParts>
struct ScaledMin {
  uint16_t d = 0;
  uint16_t dmin = 0;
  std::array<int, kParts> scale{};
  std::array<int, kParts> min{};
  std::array<int, kValues> codes{};
};

// The integers (scale, min), both in 0..most, around the rounded ones that leave the least error.
struct Integers {
  int scale;
  int min;
};
Integers nearest_integers(std::span<const double> x, std::span<const double> w, int highest, Affine fitted, double d,
                          double dmin, int most) {
  const IntegerLevels range{0, most};
  const int scale = d == 0.0 ? 0 : range.code(fitted.scale / d);
  const int min = dmin == 0.0 ? 0 : range.code(-fitted.offset / dmin);
  const auto error = [&](Integers at) { return affine_error(x, w, highest, {d * at.scale, -dmin * at.min}); };
  Integers best{scale, min};
  double least = error(best);
  for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, most); ++s)
    for (int m = std::max(min - 1, 0); m <= std::min(min + 1, most); ++m) {
      const double e = error({s, m});
      if (e >= least) continue;
      least = e;
      best = {s, m};
    }
  return best;
}

template <uint32_t kParts>
ScaledMin<kParts> encode_parts_with_min(Values x, int highest, int most) {
  constexpr uint32_t kPart = kValues / kParts;
  std::array<double, kValues> w;
  importance(x, w);
  const auto part = [](auto& all, uint32_t p) { return std::span(all).subspan(kPart * p, kPart); };
  std::array<Affine, kParts> fitted;
  double largest_scale = 0.0;
  double largest_min = 0.0;
  for (uint32_t p = 0; p < kParts; ++p) {
    fitted[p] = fit_affine(part(x, p), part(w, p), highest, true);
    largest_scale = std::max(largest_scale, fitted[p].scale);
    largest_min = std::max(largest_min, -fitted[p].offset);
  }

  ScaledMin<kParts> out;
  out.d = to_f16_finite(largest_scale / most);
  out.dmin = to_f16_finite(largest_min / most);
  const double d = f16_to_f32(out.d);
  const double dmin = f16_to_f32(out.dmin);
  for (uint32_t p = 0; p < kParts; ++p) {
    const Integers best = nearest_integers(part(x, p), part(w, p), highest, fitted[p], d, dmin, most);
    out.scale[p] = best.scale;
    out.min[p] = best.min;
    encode_affine(part(x, p), highest, {d * best.scale, -dmin * best.min}, &out.codes[kPart * p]);
  }
  return out;
}

// Puts two bits of every code, from bit `from` up, where Q2_K keeps them.
void pack_crumbs(const std::array<int, kValues>& codes, int from, uint8_t* qs) {
  std::memset(qs, 0, 64);
  for (uint32_t i = 0; i < kValues; ++i) {
    uint8_t& byte = qs[32 * (i / 128) + i % 32];
    byte = static_cast<uint8_t>(byte | (codes[i] >> from & 3) << (2 * (i / 32 % 4)));
  }
}

// Puts bit `from` of every code at bit `run` of byte i % 32.
void pack_high_bits(const std::array<int, kValues>& codes, int from, uint8_t* bits) {
  std::memset(bits, 0, 32);
  for (uint32_t i = 0; i < kValues; ++i)
    bits[i % 32] = static_cast<uint8_t>(bits[i % 32] | (codes[i] >> from & 1) << (i / 32));
}

// Low nibbles of codes, runs 2p and 2p + 1 in the halves of 32 bytes.
void pack_nibble_pairs(const std::array<int, kValues>& codes, uint8_t* qs) {
  for (uint32_t p = 0; p < 4; ++p)
    for (uint32_t j = 0; j < 32; ++j)
      qs[32 * p + j] = static_cast<uint8_t>((codes[64 * p + j] & 15) | (codes[64 * p + 32 + j] & 15) << 4);
}

template <class Block>
void pack_scales_k(const ScaledMin<8>& parts, Block& out) {
  out.d = parts.d;
  out.dmin = parts.dmin;
  std::memset(out.scales, 0, sizeof out.scales);
  for (uint32_t p = 0; p < 8; ++p)
    store_scale_min_k(out.scales, p, {static_cast<uint8_t>(parts.scale[p]), static_cast<uint8_t>(parts.min[p])});
}

}  // namespace

void encode_block(BlockValues<BlockQ2_K> x, BlockQ2_K& out) {
  const ScaledMin<16> parts = encode_parts_with_min<16>(x, 3, 15);
  out.d = parts.d;
  out.dmin = parts.dmin;
  for (uint32_t p = 0; p < 16; ++p) out.scales[p] = static_cast<uint8_t>(parts.scale[p] | parts.min[p] << 4);
  pack_crumbs(parts.codes, 0, out.qs);
}

void encode_block(BlockValues<BlockQ3_K> x, BlockQ3_K& out) {
  Scaled<16> parts = encode_parts<16>(x, IntegerLevels{-4, 3}, IntegerLevels{-32, 31});
  out.d = parts.d;
  std::memset(out.scales, 0, sizeof out.scales);
  for (uint32_t p = 0; p < 16; ++p) store_scale_q3_k(out.scales, p, static_cast<uint32_t>(parts.scale[p] + 32));
  for (int& code : parts.codes) code += 4;
  pack_crumbs(parts.codes, 0, out.qs);
  pack_high_bits(parts.codes, 2, out.hmask);
}

void encode_block(BlockValues<BlockQ4_K> x, BlockQ4_K& out) {
  const ScaledMin<8> parts = encode_parts_with_min<8>(x, 15, 63);
  pack_scales_k(parts, out);
  pack_nibble_pairs(parts.codes, out.qs);
}

void encode_block(BlockValues<BlockQ5_K> x, BlockQ5_K& out) {
  const ScaledMin<8> parts = encode_parts_with_min<8>(x, 31, 63);
  pack_scales_k(parts, out);
  pack_nibble_pairs(parts.codes, out.qs);
  pack_high_bits(parts.codes, 4, out.qh);
}

void encode_block(BlockValues<BlockQ6_K> x, BlockQ6_K& out) {
  Scaled<16> parts = encode_parts<16>(x, IntegerLevels{-32, 31}, IntegerLevels{-128, 127});
  out.d = parts.d;
  for (uint32_t p = 0; p < 16; ++p) out.scales[p] = static_cast<int8_t>(parts.scale[p]);
  for (int& code : parts.codes) code += 32;
  pack_crumbs(parts.codes, 4, out.qh);
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t j = 0; j < 64; ++j) {
      const int* codes = &parts.codes[128 * half];
      out.ql[64 * half + j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + 64] & 15) << 4);
    }
}

void encode_block(BlockValues<BlockIQ4_XS> x, BlockIQ4_XS& out) {
  const Scaled<8> parts = encode_parts<8>(x, TableLevels{kIq4Levels}, IntegerLevels{-32, 31});
  out.d = parts.d;
  out.scales_h = 0;
  std::memset(out.scales_l, 0, sizeof out.scales_l);
  for (uint32_t p = 0; p < 8; ++p) {
    const int scale = parts.scale[p] + 32;
    out.scales_l[p / 2] = static_cast<uint8_t>(out.scales_l[p / 2] | (scale & 15) << (4 * (p % 2)));
    out.scales_h = static_cast<uint16_t>(out.scales_h | (scale >> 4) << (2 * p));
    for (uint32_t j = 0; j < 16; ++j)
      out.qs[16 * p + j] = static_cast<uint8_t>(parts.codes[32 * p + j] | parts.codes[32 * p + 16 + j] << 4);
  }
}

}  // namespace tw::gguf
