#include "spatial/precision.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/half.h"

namespace tw::spatial {
namespace {

constexpr std::array<PrecisionTraits, kPrecisions> kTraits{{
    {"i8", NumberKind::Integer, 8, 0},
    {"i16", NumberKind::Integer, 16, 0},
    {"i32", NumberKind::Integer, 32, 0},
    {"i64", NumberKind::Integer, 64, 0},
    {"fx16", NumberKind::Fixed, 16, 8},
    {"fx32", NumberKind::Fixed, 32, 16},
    {"bf16", NumberKind::Float, 16, 7},
    {"f16", NumberKind::Float, 16, 10},
    {"f32", NumberKind::Float, 32, 23},
}};

double round_fixed(const PrecisionTraits& format, double value) {
  if (std::isnan(value)) return 0;
  const double unit = std::ldexp(1.0, -static_cast<int>(format.fraction));
  const double end = std::ldexp(1.0, static_cast<int>(format.bits) - 1);
  return std::clamp(std::nearbyint(value / unit), -end, end - 1) * unit;
}

// A double rounded once to 16 bits: through a float rounded to odd, so that the second rounding sees what the first
// dropped.
float to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  const float toward =
      std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0F) : nearest;
  const uint32_t bits = std::bit_cast<uint32_t>(toward) | 1U;
  return std::bit_cast<float>(bits);
}

}  // namespace

const PrecisionTraits& traits(Precision precision) { return kTraits.at(static_cast<size_t>(precision)); }
std::string_view name(Precision precision) { return traits(precision).name; }

std::optional<Precision> parse_precision(std::string_view text) {
  for (size_t i = 0; i < kTraits.size(); ++i)
    if (kTraits[i].name == text) return static_cast<Precision>(i);
  return std::nullopt;
}

bool is_integer(Precision precision) { return traits(precision).kind == NumberKind::Integer; }
uint32_t bytes_of(Precision precision) { return traits(precision).bits / 8; }

int64_t int_max(Precision precision) {
  TW_CHECK(is_integer(precision), "{} is no integer precision", name(precision));
  return static_cast<int64_t>((uint64_t{1} << (traits(precision).bits - 1)) - 1);
}

Precision smallest_integer(uint64_t space) {
  for (const Precision p : {Precision::I8, Precision::I16, Precision::I32})
    if (space <= static_cast<uint64_t>(int_max(p))) return p;
  return Precision::I64;
}

double round_to(Precision precision, double value) {
  switch (precision) {
    case Precision::F32: return static_cast<float>(value);
    case Precision::Bf16: return bf16_to_f32(f32_to_bf16(to_odd(value)));
    case Precision::F16: return f16_to_f32(f32_to_f16(to_odd(value)));
    case Precision::Fx16:
    case Precision::Fx32: return round_fixed(traits(precision), value);
    default: break;
  }
  TW_CHECK(false, "{} is no real precision", name(precision));
}

}  // namespace tw::spatial
