#pragma once

// Elements as memory and pages hold them: the code of a precision, little-endian, bytes_of(precision) wide.
//   i8 i16 i32 i64  the integer          fx16 fx32  the value times 2^fraction as an integer
//   bf16 f16 f32    the IEEE bits

#include <cstddef>
#include <cstdint>

#include "spatial/precision.h"

namespace tw::spatial::evaluate {

// ---- one element: number `at` of an array of codes ----

double real_at(Precision precision, const std::byte* codes, uint64_t at);      // of any precision
int64_t integer_at(Precision precision, const std::byte* codes, uint64_t at);  // requires an integer precision
// Rounds once. Requires a real precision.
void put_real(Precision precision, double value, std::byte* codes, uint64_t at);
// An integer in any precision: exact in an integer one, rounded once in a real one. False, and nothing written, when an
// integer precision does not hold it.
[[nodiscard]] bool put_integer(Precision precision, int64_t value, std::byte* codes, uint64_t at);

// Whether an integer precision holds the value.
inline bool holds(Precision precision, int64_t value) {
  return value <= int_max(precision) && value >= -int_max(precision) - 1;
}

// What a page starts as when points that no stage writes are to be told from zeros: NaN, or the smallest integer.
void fill_poison(Precision precision, std::byte* codes, uint64_t count);

}  // namespace tw::spatial::evaluate
