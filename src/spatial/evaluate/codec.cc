#include "spatial/evaluate/codec.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"

namespace tw::spatial::evaluate {
namespace {

template <class Code>
Code get(const std::byte* codes, uint64_t at) {
  Code code;
  std::memcpy(&code, codes + at * sizeof(Code), sizeof(Code));
  return code;
}

template <class Code>
void put(Code code, std::byte* codes, uint64_t at) {
  std::memcpy(codes + at * sizeof(Code), &code, sizeof(Code));
}

void put_code(Precision precision, int64_t code, std::byte* codes, uint64_t at) {
  switch (bytes_of(precision)) {
    case 1: return put(static_cast<int8_t>(code), codes, at);
    case 2: return put(static_cast<int16_t>(code), codes, at);
    case 4: return put(static_cast<int32_t>(code), codes, at);
    default: return put(code, codes, at);
  }
}

int64_t code_at(Precision precision, const std::byte* codes, uint64_t at) {
  switch (bytes_of(precision)) {
    case 1: return get<int8_t>(codes, at);
    case 2: return get<int16_t>(codes, at);
    case 4: return get<int32_t>(codes, at);
    default: return get<int64_t>(codes, at);
  }
}

double fixed_unit(Precision precision) { return precision == Precision::Fx16 ? 0x1p-8 : 0x1p-16; }

}  // namespace

double real_at(Precision precision, const std::byte* codes, uint64_t at) {
  switch (precision) {
    case Precision::F32: return get<float>(codes, at);
    case Precision::Bf16: return bf16_to_f32(get<uint16_t>(codes, at));
    case Precision::F16: return f16_to_f32(get<uint16_t>(codes, at));
    case Precision::Fx16:
    case Precision::Fx32: return static_cast<double>(code_at(precision, codes, at)) * fixed_unit(precision);
    default: return static_cast<double>(code_at(precision, codes, at));
  }
}

int64_t integer_at(Precision precision, const std::byte* codes, uint64_t at) {
  TW_CHECK(is_integer(precision), "an integer is read from {}", name(precision));
  return code_at(precision, codes, at);
}

void put_real(Precision precision, double value, std::byte* codes, uint64_t at) {
  const double rounded = round_to(precision, value);
  switch (precision) {
    case Precision::F32: return put(static_cast<float>(rounded), codes, at);
    case Precision::Bf16: return put(f32_to_bf16(static_cast<float>(rounded)), codes, at);
    case Precision::F16: return put(f32_to_f16(static_cast<float>(rounded)), codes, at);
    default: return put_code(precision, static_cast<int64_t>(rounded / fixed_unit(precision)), codes, at);
  }
}

bool put_integer(Precision precision, int64_t value, std::byte* codes, uint64_t at) {
  if (is_integer(precision)) {
    if (!holds(precision, value)) return false;
    put_code(precision, value, codes, at);
    return true;
  }
  put_real(precision, static_cast<double>(value), codes, at);
  return true;
}

void fill_poison(Precision precision, std::byte* codes, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (traits(precision).kind == NumberKind::Float)
      put_real(precision, std::numeric_limits<double>::quiet_NaN(), codes, i);
    else
      put_code(precision, std::numeric_limits<int64_t>::min() >> (64 - traits(precision).bits), codes, i);
  }
}

}  // namespace tw::spatial::evaluate
