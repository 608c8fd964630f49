#pragma once

// Least-squares search for the scales of quantized blocks. All sums are binary64 in index order, and the candidates are
// a fixed list of which the first best is taken, so that a block's encoding is a function of its values alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"

namespace tw::gguf {

// Nearest integer, ties to even. Requires |t| < 2^51.
inline double round_even(double t) { return (t + 0x1.8p52) - 0x1.8p52; }

// Integers lowest..highest; a code is the level itself.
struct IntegerLevels {
  int lowest;
  int highest;

  [[nodiscard]] int code(double t) const {
    return static_cast<int>(round_even(std::clamp(t, static_cast<double>(lowest), static_cast<double>(highest))));
  }
  [[nodiscard]] double level(int code) const { return code; }
  // How far the search moves the level that the extreme value falls on.
  [[nodiscard]] double step() const { return 0.15; }
};

// Sixteen ascending levels; a code is an index. A tie takes the lower level.
struct TableLevels {
  const std::array<int8_t, 16>& levels;
  int lowest = levels.front();
  int highest = levels.back();

  [[nodiscard]] int code(double t) const {
    int below = 0;  // levels whose upper neighbour is nearer
    for (size_t k = 0; k < 15; ++k) below += 2.0 * t > levels[k] + levels[k + 1];
    return below;
  }
  [[nodiscard]] double level(int code) const { return levels[static_cast<size_t>(code)]; }
  [[nodiscard]] double step() const { return 1.5; }
};

// What an error in each value costs: |x| plus the root mean square of the block that x belongs to. Products with large
// weights dominate a dot product, so their relative error is worth more than that of the many small ones.
void importance(std::span<const double> x, std::span<double> weights);

// The value of largest magnitude, the first of equals; 0 when all are.
double extreme(std::span<const double> x);

// A binary16 scale, saturated to the finite numbers.
inline uint16_t to_f16_finite(double scale) {
  return f32_to_f16(static_cast<float>(std::clamp(scale, -65504.0, 65504.0)));
}

// Codes of x / scale; a zero scale gives the code of 0.
template <class Levels>
void encode_scaled(std::span<const double> x, const Levels& levels, double scale, int* codes) {
  const double inverse = scale == 0.0 ? 0.0 : 1.0 / scale;
  for (size_t i = 0; i < x.size(); ++i) codes[i] = levels.code(x[i] * inverse);
}

// The weighted squared error of x against scale * level(code), with the codes that encode_scaled gives.
template <class Levels>
double scaled_error(std::span<const double> x, std::span<const double> w, const Levels& levels, double scale) {
  const double inverse = scale == 0.0 ? 0.0 : 1.0 / scale;
  double error = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double miss = x[i] - scale * levels.level(levels.code(x[i] * inverse));
    error += w[i] * miss * miss;
  }
  return error;
}

// The signed scale whose multiples of the levels come nearest to x. For a set of codes the best scale is sum(w x l) /
// sum(w l^2) and it leaves sum(w x^2) - sum(w x l)^2 / sum(w l^2); the search puts the extreme value on and around the
// outermost levels and takes the codes that leave least.
template <class Levels>
double fit_scale(std::span<const double> x, std::span<const double> w, const Levels& levels) {
  constexpr int kSteps = 6;
  const double most = extreme(x);
  if (most == 0.0) return 0.0;
  double best = 0.0;
  double best_gain = 0.0;
  const auto attempt = [&](double target) {
    const double inverse = target / most;
    double xl = 0.0;
    double ll = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double l = levels.level(levels.code(x[i] * inverse));
      xl += w[i] * x[i] * l;
      ll += w[i] * l * l;
    }
    if (ll == 0.0 || xl * xl <= best_gain * ll) return;
    best_gain = xl * xl / ll;
    best = xl / ll;
  };
  const bool mirrored = levels.lowest == -levels.highest;
  for (int step = -kSteps; step <= kSteps; ++step) {
    attempt(levels.highest + step * levels.step());
    if (!mirrored) attempt(levels.lowest + step * levels.step());
  }
  return best;
}

// scale * code + offset, codes 0..highest.
struct Affine {
  double scale = 0.0;
  double offset = 0.0;
};

void encode_affine(std::span<const double> x, int highest, Affine map, int* codes);
double affine_error(std::span<const double> x, std::span<const double> w, int highest, Affine map);

// The map that spans the values of x exactly, from code 0 at the smallest to code `highest` at the largest.
Affine span_affine(std::span<const double> x, int highest);

// The map that comes nearest to x; scale >= 0. With `offset_below_zero` the offset is at most 0.
Affine fit_affine(std::span<const double> x, std::span<const double> w, int highest, bool offset_below_zero);

}  // namespace tw::gguf
