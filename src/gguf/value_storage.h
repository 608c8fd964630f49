#pragma once

// How numbers of a metadata value lie in a file: the stored type of each ValueType, and the wide type it is kept in.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "gguf/value.h"

namespace tw::gguf {

// Numbers are copied between memory and file as they are.
static_assert(std::endian::native == std::endian::little, "the file layout is little-endian");

// The type a Scalar or an Array keeps a stored number in.
template <class Stored>
using Kept = std::conditional_t<std::is_floating_point_v<Stored>, double,
                                std::conditional_t<std::is_signed_v<Stored>, int64_t, uint64_t>>;

constexpr bool is_number(ValueType type) {
  return type != ValueType::Bool && type != ValueType::String && type != ValueType::Array;
}

// visit(Stored{}) with the stored type. Requires is_number(type).
template <class Visit>
decltype(auto) with_stored_type(ValueType type, Visit&& visit) {
  switch (type) {
    case ValueType::U8: return visit(uint8_t{});
    case ValueType::I8: return visit(int8_t{});
    case ValueType::U16: return visit(uint16_t{});
    case ValueType::I16: return visit(int16_t{});
    case ValueType::U32: return visit(uint32_t{});
    case ValueType::I32: return visit(int32_t{});
    case ValueType::F32: return visit(float{});
    case ValueType::U64: return visit(uint64_t{});
    case ValueType::I64: return visit(int64_t{});
    case ValueType::F64: return visit(double{});
    case ValueType::Bool:
    case ValueType::String:
    case ValueType::Array: break;
  }
  fail_check("is_number(type)", __FILE__, __LINE__, name(type));
}

}  // namespace tw::gguf
