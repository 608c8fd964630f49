#pragma once

// Least-squares search for the scales of quantized blocks. Sums run over four lanes and then over the lanes, and the
// candidates are a fixed list of which the first best is taken, so that a block's encoding is a function of its values
// alone.
//
// All lengths here are multiples of four. Values are those of the block times a power of two that brings the largest
// into [1, 2), so that no square overflows or vanishes.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "gguf/quantize_levels.h"

namespace tw::gguf {

using Floats = std::span<const float>;

// The values of a block as value = x * 2^exponent, exactly but for values under 2^-149 of the largest.
struct Normalized {
  Floats x;
  int exponent = 0;

  // A scale of x as the file stores that of the values: binary16, saturated to the finite numbers.
  [[nodiscard]] uint16_t to_f16(double scale) const {
    return f32_to_f16(static_cast<float>(std::clamp(std::ldexp(scale, exponent), -65504.0, 65504.0)));
  }
  // And back.
  [[nodiscard]] float from_f16(uint16_t scale) const { return std::ldexp(f16_to_f32(scale), -exponent); }
};

// What an error in each value costs: |x| plus the root mean square of the block that x belongs to. Products with large
// weights dominate a dot product, so their relative error is worth more than that of the many small ones.
void importance(Floats x, std::span<float> weights);

// The value of largest magnitude, the first of equals; 0 when all are.
float extreme(Floats x);

inline float sum_lanes(Float4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// Codes of x / scale; a zero scale gives the code of 0.
template <class Levels>
void encode_scaled(Floats x, const Levels& levels, float scale, int* codes) {
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  for (size_t i = 0; i < x.size(); i += 4) {
    const Float4 code = levels.code(load4(&x[i]) * inverse);
    for (size_t j = 0; j < 4; ++j) codes[i + j] = static_cast<int>(code[j]);
  }
}

// The weighted squared error of x against scale * level, with the levels that encode_scaled takes.
template <class Levels>
float scaled_error(Floats x, Floats w, const Levels& levels, float scale) {
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  Float4 error = splat4(0.0f);
  for (size_t i = 0; i < x.size(); i += 4) {
    const Float4 values = load4(&x[i]);
    const Float4 miss = values - levels.nearest(values * inverse) * scale;
    error += load4(&w[i]) * (miss * miss);
  }
  return sum_lanes(error);
}

// The signed scale whose multiples of the levels come nearest to x. For a choice of levels l the best scale is
// sum(w x l) / sum(w l^2) and it leaves sum(w x^2) - sum(w x l)^2 / sum(w l^2); the search puts the extreme value on
// and around the outermost levels and takes the choice that leaves least.
template <class Levels>
double fit_scale(Floats x, Floats w, const Levels& levels) {
  constexpr int kSteps = 6;
  const float most = extreme(x);
  if (most == 0.0f) return 0.0;
  double best = 0.0;
  double best_gain = 0.0;
  const auto attempt = [&](float target) {
    const float inverse = target / most;
    Float4 xl = splat4(0.0f);
    Float4 ll = splat4(0.0f);
    for (size_t i = 0; i < x.size(); i += 4) {
      const Float4 values = load4(&x[i]);
      const Float4 l = levels.nearest(values * inverse);
      const Float4 wl = load4(&w[i]) * l;
      xl += wl * values;
      ll += wl * l;
    }
    const double product = sum_lanes(xl);
    const double square = sum_lanes(ll);
    if (square == 0.0 || product * product <= best_gain * square) return;
    best_gain = product * product / square;
    best = product / square;
  };
  const bool mirrored = levels.lowest == -levels.highest;
  for (int step = -kSteps; step <= kSteps; ++step) {
    attempt(levels.highest + static_cast<float>(step) * Levels::kStep);
    if (!mirrored) attempt(levels.lowest + static_cast<float>(step) * Levels::kStep);
  }
  return best;
}

// scale * code + offset, codes 0..highest.
struct Affine {
  float scale = 0.0f;
  float offset = 0.0f;
};

void encode_affine(Floats x, int highest, Affine map, int* codes);
float affine_error(Floats x, Floats w, int highest, Affine map);

// The map that spans the values of x exactly, from code 0 at the smallest to code `highest` at the largest.
Affine span_affine(Floats x, int highest);

// The map that comes nearest to x; scale >= 0. With `offset_below_zero` the offset is at most 0.
Affine fit_affine(Floats x, Floats w, int highest, bool offset_below_zero);

}  // namespace tw::gguf
