#pragma once

// A metadata value of a GGUF file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tw::gguf {

enum class ValueType : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};
std::string_view name(ValueType type);
// The type with that number in a file, or nothing.
std::optional<ValueType> value_type_of_id(uint32_t id);

// Integers are kept as (un)signed 64-bit numbers beside the type the file gave them; arrays are of one scalar type
// (an array of arrays is refused when the file is read).
using Scalar = std::variant<uint64_t, int64_t, double, bool, std::string>;

struct Array {
  ValueType element = ValueType::U8;
  // One of these holds the items, by element type: integers, floats, bools and strings.
  std::variant<std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>, std::vector<bool>,
               std::vector<std::string>>
      items;
  [[nodiscard]] uint64_t size() const;
  bool operator==(const Array&) const = default;
};

struct Value {
  ValueType type = ValueType::U8;
  std::variant<Scalar, Array> data;
  bool operator==(const Value&) const = default;
};

// "u32", "string", "array of 12 f32".
std::string describe(const Value& value);

// Convenience makers.
Value value_u32(uint32_t v);
Value value_u64(uint64_t v);
Value value_f32(float v);
Value value_bool(bool v);
Value value_string(std::string v);
Value value_strings(std::vector<std::string> v);
Value value_f32s(std::vector<double> v);
Value value_i32s(std::vector<int64_t> v);

}  // namespace tw::gguf
