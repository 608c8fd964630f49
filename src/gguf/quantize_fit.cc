#include "gguf/quantize_fit.h"

namespace tw::gguf {
namespace {

IntegerLevels codes_to(int highest) { return {0.0f, static_cast<float>(highest)}; }

float inverse_of(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

// Weighted sums of values x and codes l, from which the best map for these codes follows.
struct Moments {
  double w, l, ll, x, xl;
};

Moments moments(Floats x, Floats w, const IntegerLevels& levels, Affine map) {
  const float inverse = inverse_of(map.scale);
  Float4 sw = splat4(0.0f), sl = sw, sll = sw, sx = sw, sxl = sw;
  for (size_t i = 0; i < x.size(); i += 4) {
    const Float4 values = load4(&x[i]);
    const Float4 weights = load4(&w[i]);
    const Float4 l = levels.nearest((values - map.offset) * inverse);
    const Float4 wl = weights * l;
    sw += weights;
    sl += wl;
    sll += wl * l;
    sx += weights * values;
    sxl += wl * values;
  }
  return {sum_lanes(sw), sum_lanes(sl), sum_lanes(sll), sum_lanes(sx), sum_lanes(sxl)};
}

// Solves the two normal equations; falls back to `map` where they have no solution with a positive scale.
Affine solve(const Moments& s, bool offset_below_zero, Affine map) {
  const double determinant = s.w * s.ll - s.l * s.l;
  if (!(determinant > 0.0)) return map;
  double scale = (s.w * s.xl - s.l * s.x) / determinant;
  double offset = (s.ll * s.x - s.l * s.xl) / determinant;
  if (offset_below_zero && offset > 0.0) {
    scale = s.xl / s.ll;
    offset = 0.0;
  }
  return scale > 0.0 ? Affine{static_cast<float>(scale), static_cast<float>(offset)} : map;
}

}  // namespace

void importance(Floats x, std::span<float> weights) {
  double squares = 0.0;
  for (float value : x) squares += static_cast<double>(value) * value;
  const auto rms = static_cast<float>(std::sqrt(squares / static_cast<double>(x.size())));
  for (size_t i = 0; i < x.size(); ++i) weights[i] = rms + std::fabs(x[i]);
}

float extreme(Floats x) {
  float most = 0.0f;
  for (float value : x)
    if (std::fabs(value) > std::fabs(most)) most = value;
  return most;
}

void encode_affine(Floats x, int highest, Affine map, int* codes) {
  const IntegerLevels levels = codes_to(highest);
  const float inverse = inverse_of(map.scale);
  for (size_t i = 0; i < x.size(); i += 4) {
    const Float4 code = levels.code((load4(&x[i]) - map.offset) * inverse);
    for (size_t j = 0; j < 4; ++j) codes[i + j] = static_cast<int>(code[j]);
  }
}

float affine_error(Floats x, Floats w, int highest, Affine map) {
  const IntegerLevels levels = codes_to(highest);
  const float inverse = inverse_of(map.scale);
  Float4 error = splat4(0.0f);
  for (size_t i = 0; i < x.size(); i += 4) {
    const Float4 values = load4(&x[i]);
    const Float4 miss = values - (levels.nearest((values - map.offset) * inverse) * map.scale + map.offset);
    error += load4(&w[i]) * (miss * miss);
  }
  return sum_lanes(error);
}

Affine span_affine(Floats x, int highest) {
  const auto [low, high] = std::ranges::minmax(x);
  return {(high - low) / static_cast<float>(highest), low};
}

Affine fit_affine(Floats x, Floats w, int highest, bool offset_below_zero) {
  constexpr int kSteps = 10;         // tenths of a level by which the span is widened and narrowed
  constexpr int kReassignments = 3;  // rounds of new codes for the best map
  const IntegerLevels levels = codes_to(highest);
  const auto [smallest, high] = std::ranges::minmax(x);
  const float low = offset_below_zero ? std::min(smallest, 0.0f) : smallest;
  if (high <= low) return {0.0f, low};

  Affine best{(high - low) / static_cast<float>(highest), low};
  float best_error = affine_error(x, w, highest, best);
  const auto attempt = [&](Affine start) {
    const Affine map = solve(moments(x, w, levels, start), offset_below_zero, start);
    const float error = affine_error(x, w, highest, map);
    if (error >= best_error) return false;
    best = map;
    best_error = error;
    return true;
  };
  for (int step = -kSteps; step <= kSteps; ++step)
    attempt({(high - low) / (static_cast<float>(highest) + 0.1f * static_cast<float>(step)), low});
  for (int round = 0; round < kReassignments && attempt(best); ++round) {
  }
  return best;
}

}  // namespace tw::gguf
