#include "gguf/quantize_fit.h"

namespace tw::gguf {
namespace {

// Weighted sums of values x and codes l, from which the best map for these codes follows.
struct Moments {
  double w = 0, l = 0, ll = 0, x = 0, xl = 0;
};

Moments moments(std::span<const double> x, std::span<const double> w, const IntegerLevels& levels, Affine map) {
  const double inverse = 1.0 / map.scale;
  Moments sums;
  for (size_t i = 0; i < x.size(); ++i) {
    const double l = levels.code((x[i] - map.offset) * inverse);
    sums.w += w[i];
    sums.l += w[i] * l;
    sums.ll += w[i] * l * l;
    sums.x += w[i] * x[i];
    sums.xl += w[i] * x[i] * l;
  }
  return sums;
}

// Solves the two normal equations; falls back to `map` where they have no solution with a positive scale.
Affine solve(const Moments& s, bool offset_below_zero, Affine map) {
  const double determinant = s.w * s.ll - s.l * s.l;
  if (!(determinant > 0.0)) return map;
  Affine best{(s.w * s.xl - s.l * s.x) / determinant, (s.ll * s.x - s.l * s.xl) / determinant};
  if (offset_below_zero && best.offset > 0.0) best = {s.xl / s.ll, 0.0};
  return best.scale > 0.0 ? best : map;
}

}  // namespace

void importance(std::span<const double> x, std::span<double> weights) {
  double squares = 0.0;
  for (double value : x) squares += value * value;
  const double rms = std::sqrt(squares / static_cast<double>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) weights[i] = rms + std::fabs(x[i]);
}

double extreme(std::span<const double> x) {
  double most = 0.0;
  for (double value : x)
    if (std::fabs(value) > std::fabs(most)) most = value;
  return most;
}

void encode_affine(std::span<const double> x, int highest, Affine map, int* codes) {
  const IntegerLevels levels{0, highest};
  const double inverse = map.scale == 0.0 ? 0.0 : 1.0 / map.scale;
  for (size_t i = 0; i < x.size(); ++i) codes[i] = levels.code((x[i] - map.offset) * inverse);
}

double affine_error(std::span<const double> x, std::span<const double> w, int highest, Affine map) {
  const IntegerLevels levels{0, highest};
  const double inverse = map.scale == 0.0 ? 0.0 : 1.0 / map.scale;
  double error = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double miss = x[i] - (map.scale * levels.code((x[i] - map.offset) * inverse) + map.offset);
    error += w[i] * miss * miss;
  }
  return error;
}

Affine span_affine(std::span<const double> x, int highest) {
  const auto [low, high] = std::ranges::minmax(x);
  return {(high - low) / highest, low};
}

Affine fit_affine(std::span<const double> x, std::span<const double> w, int highest, bool offset_below_zero) {
  constexpr int kSteps = 10;         // tenths of a level by which the span is widened and narrowed
  constexpr int kReassignments = 3;  // rounds of new codes for the best map
  const IntegerLevels levels{0, highest};
  const auto [smallest, high] = std::ranges::minmax(x);
  const double low = offset_below_zero ? std::min(smallest, 0.0) : smallest;
  if (high <= low) return {0.0, low};

  Affine best{(high - low) / highest, low};
  double best_error = affine_error(x, w, highest, best);
  const auto attempt = [&](Affine start) {
    const Affine map = solve(moments(x, w, levels, start), offset_below_zero, start);
    const double error = affine_error(x, w, highest, map);
    if (error >= best_error) return false;
    best = map;
    best_error = error;
    return true;
  };
  for (int step = -kSteps; step <= kSteps; ++step) attempt({(high - low) / (highest + 0.1 * step), low});
  for (int round = 0; round < kReassignments && attempt(best); ++round) {
  }
  return best;
}

}  // namespace tw::gguf
