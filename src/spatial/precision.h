#pragma once

// What an element of a tensor, a page or an accumulator is stored as.
//
//   i8 i16 i32 i64   two's complement; a result outside the range is a fault, never wrapped or clamped
//   fx16 fx32        fixed point with 8 and 16 fraction bits: round to nearest even, saturate, NaN becomes 0
//   bf16 f16 f32     IEEE round to nearest even; NaN stays NaN
//
// "Integer" are the i formats; "real" are the others.

#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::spatial {

enum class NumberKind : uint8_t { Integer, Fixed, Float };
enum class Precision : uint8_t { I8, I16, I32, I64, Fx16, Fx32, Bf16, F16, F32 };
inline constexpr int kPrecisions = 9;

struct PrecisionTraits {
  std::string_view name;
  NumberKind kind;
  uint32_t bits;
  uint32_t fraction;  // bits below the binary point, or of a float's significand; 0 for integers
};

const PrecisionTraits& traits(Precision precision);
std::string_view name(Precision precision);
std::optional<Precision> parse_precision(std::string_view text);

bool is_integer(Precision precision);
inline bool is_real(Precision precision) { return !is_integer(precision); }
uint32_t bytes_of(Precision precision);
// The largest value of an integer precision; its smallest is one less than the negative.
int64_t int_max(Precision precision);
// The smallest of all integer precisions that holds every magnitude up to `space`, whether a target has it or not.
Precision smallest_integer(uint64_t space);

// One value as a real precision holds it, rounded once. Requires a real precision.
double round_to(Precision precision, double value);

}  // namespace tw::spatial
