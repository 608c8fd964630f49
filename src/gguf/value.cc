#include "gguf/value.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace tw::gguf {
namespace {

// In the order of the ids, which have no gaps.
constexpr std::array<std::string_view, 13> kNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                     "bool", "string", "array", "u64", "i64", "f64"};

}  // namespace

std::string_view name(ValueType type) { return kNames.at(static_cast<uint32_t>(type)); }

std::optional<ValueType> value_type_of_id(uint32_t id) {
  if (id >= kNames.size()) return std::nullopt;
  return static_cast<ValueType>(id);
}

uint64_t Array::size() const {
  return std::visit([](const auto& list) -> uint64_t { return list.size(); }, items);
}

std::string describe(const Value& value) {
  const auto* array = std::get_if<Array>(&value.data);
  return array ? fmt::format("array of {} {}", array->size(), name(array->element)) : std::string(name(value.type));
}

Value value_u32(uint32_t v) { return {ValueType::U32, Scalar(uint64_t{v})}; }
Value value_u64(uint64_t v) { return {ValueType::U64, Scalar(v)}; }
Value value_f32(float v) { return {ValueType::F32, Scalar(double{v})}; }
Value value_bool(bool v) { return {ValueType::Bool, Scalar(v)}; }
Value value_string(std::string v) { return {ValueType::String, Scalar(std::move(v))}; }
Value value_strings(std::vector<std::string> v) { return {ValueType::Array, Array{ValueType::String, std::move(v)}}; }
Value value_f32s(std::vector<double> v) { return {ValueType::Array, Array{ValueType::F32, std::move(v)}}; }
Value value_i32s(std::vector<int64_t> v) { return {ValueType::Array, Array{ValueType::I32, std::move(v)}}; }

}  // namespace tw::gguf
