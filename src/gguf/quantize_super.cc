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

int nearest_integer(float t, int lowest, int highest) {
  return static_cast<int>(std::nearbyint(std::clamp(t, static_cast<float>(lowest), static_cast<float>(highest))));
}

// value = d * scale[part] * level(code)
template <uint32_t kParts>
struct Scaled {
  uint16_t d = 0;
  std::array<int, kParts> scale{};
  std::array<int, kValues> codes{};
};

template <uint32_t kParts, class Levels>
Scaled<kParts> encode_parts(const Normalized& block, const Levels& levels, int lowest, int highest) {
  constexpr uint32_t kPart = kValues / kParts;
  std::array<float, kValues> w;
  importance(block.x, w);
  const auto part = [](Floats all, uint32_t p) { return all.subspan(kPart * p, kPart); };
  std::array<float, kParts> fitted;
  for (uint32_t p = 0; p < kParts; ++p)
    fitted[p] = static_cast<float>(fit_scale<Levels>(part(block.x, p), part(w, p), levels));

  Scaled<kParts> out;
  out.d = block.to_f16(extreme(fitted) / static_cast<float>(lowest));
  const float d = block.from_f16(out.d);
  for (uint32_t p = 0; p < kParts; ++p) {
    const auto error = [&](int scale) {
      return scaled_error(part(block.x, p), part(w, p), levels, d * static_cast<float>(scale));
    };
    const int middle = d == 0.0f ? 0 : nearest_integer(fitted[p] / d, lowest, highest);
    float least = error(middle);
    out.scale[p] = middle;
    for (int scale : {middle - 1, middle + 1}) {
      if (scale < lowest || scale > highest) continue;
      const float e = error(scale);
      if (e >= least) continue;
      least = e;
      out.scale[p] = scale;
    }
    encode_scaled(part(block.x, p), levels, d * static_cast<float>(out.scale[p]), &out.codes[kPart * p]);
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

struct Integers {
  int scale;
  int min;
};

Affine scaled_by(Affine units, Integers integers) {
  return {units.scale * static_cast<float>(integers.scale), units.offset * static_cast<float>(integers.min)};
}

// The integers in 0..most, around those that come nearest to the fitted map, that leave the least error.
Integers nearest_integers(Floats x, Floats w, int highest, Affine fitted, Affine units, int most) {
  const int scale = units.scale == 0.0f ? 0 : nearest_integer(fitted.scale / units.scale, 0, most);
  const int min = units.offset == 0.0f ? 0 : nearest_integer(fitted.offset / units.offset, 0, most);
  Integers best{scale, min};
  float least = affine_error(x, w, highest, scaled_by(units, best));
  for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, most); ++s)
    for (int m = std::max(min - 1, 0); m <= std::min(min + 1, most); ++m) {
      const float error = affine_error(x, w, highest, scaled_by(units, {s, m}));
      if (error >= least) continue;
      least = error;
      best = {s, m};
    }
  return best;
}

template <uint32_t kParts>
ScaledMin<kParts> encode_parts_with_min(const Normalized& block, int highest, int most) {
  constexpr uint32_t kPart = kValues / kParts;
  std::array<float, kValues> w;
  importance(block.x, w);
  const auto part = [](Floats all, uint32_t p) { return all.subspan(kPart * p, kPart); };
  std::array<Affine, kParts> fitted;
  float largest_scale = 0.0f;
  float largest_min = 0.0f;
  for (uint32_t p = 0; p < kParts; ++p) {
    fitted[p] = fit_affine(part(block.x, p), part(w, p), highest, true);
    largest_scale = std::max(largest_scale, fitted[p].scale);
    largest_min = std::max(largest_min, -fitted[p].offset);
  }

  ScaledMin<kParts> out;
  out.d = block.to_f16(largest_scale / static_cast<float>(most));
  out.dmin = block.to_f16(largest_min / static_cast<float>(most));
  const Affine units{block.from_f16(out.d), -block.from_f16(out.dmin)};
  for (uint32_t p = 0; p < kParts; ++p) {
    const Integers best = nearest_integers(part(block.x, p), part(w, p), highest, fitted[p], units, most);
    out.scale[p] = best.scale;
    out.min[p] = best.min;
    encode_affine(part(block.x, p), highest, scaled_by(units, best), &out.codes[kPart * p]);
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

void encode_block(const Normalized& block, BlockQ2_K& out) {
  const ScaledMin<16> parts = encode_parts_with_min<16>(block, 3, 15);
  out.d = parts.d;
  out.dmin = parts.dmin;
  for (uint32_t p = 0; p < 16; ++p) out.scales[p] = static_cast<uint8_t>(parts.scale[p] | parts.min[p] << 4);
  pack_crumbs(parts.codes, 0, out.qs);
}

void encode_block(const Normalized& block, BlockQ3_K& out) {
  Scaled<16> parts = encode_parts<16>(block, IntegerLevels{-4.0f, 3.0f}, -32, 31);
  out.d = parts.d;
  std::memset(out.scales, 0, sizeof out.scales);
  for (uint32_t p = 0; p < 16; ++p) store_scale_q3_k(out.scales, p, static_cast<uint32_t>(parts.scale[p] + 32));
  for (int& code : parts.codes) code += 4;
  pack_crumbs(parts.codes, 0, out.qs);
  pack_high_bits(parts.codes, 2, out.hmask);
}

void encode_block(const Normalized& block, BlockQ4_K& out) {
  const ScaledMin<8> parts = encode_parts_with_min<8>(block, 15, 63);
  pack_scales_k(parts, out);
  pack_nibble_pairs(parts.codes, out.qs);
}

void encode_block(const Normalized& block, BlockQ5_K& out) {
  const ScaledMin<8> parts = encode_parts_with_min<8>(block, 31, 63);
  pack_scales_k(parts, out);
  pack_nibble_pairs(parts.codes, out.qs);
  pack_high_bits(parts.codes, 4, out.qh);
}

void encode_block(const Normalized& block, BlockQ6_K& out) {
  Scaled<16> parts = encode_parts<16>(block, IntegerLevels{-32.0f, 31.0f}, -128, 127);
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

void encode_block(const Normalized& block, BlockIQ4_XS& out) {
  const Scaled<8> parts = encode_parts<8>(block, Iq4Levels{}, -32, 31);
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
