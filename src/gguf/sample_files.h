#pragma once

// For tests and seeds: small valid files that hold every kind of value, every format and number of dimensions.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gguf/shape.h"
#include "gguf/writer.h"

namespace tw::gguf {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct SampleFile {
  std::string name;
  FileSpec spec;
  std::vector<std::vector<std::byte>> tensors;
};

inline Value scalar(ValueType type, Scalar value) { return {type, std::move(value)}; }

template <class Item>
Value array(ValueType type, std::vector<Item> items) {
  return {ValueType::Array, Array{type, std::move(items)}};
}

// Least and greatest values of each type.
inline std::vector<std::pair<std::string, Value>> all_scalars() {
  using enum ValueType;
  return {
      {"general.architecture", value_string("sample")},
      {"s.u8", scalar(U8, uint64_t{UINT8_MAX})},
      {"s.i8", scalar(I8, int64_t{INT8_MIN})},
      {"s.u16", scalar(U16, uint64_t{UINT16_MAX})},
      {"s.i16", scalar(I16, int64_t{INT16_MIN})},
      {"s.u32", value_u32(UINT32_MAX)},
      {"s.i32", scalar(I32, int64_t{INT32_MIN})},
      {"s.u64", value_u64(UINT64_MAX)},
      {"s.i64", scalar(I64, INT64_MIN)},
      {"s.f32", value_f32(-0.1f)},
      {"s.f32.infinite", scalar(F32, kInfinity)},
      {"s.f64", scalar(F64, 0.1)},
      {"s.true", value_bool(true)},
      {"s.false", value_bool(false)},
      {"s.empty", value_string("")},
      {"s.bytes", value_string(std::string("\0\xff\xc3\x28 \n", 6))},
      {"s.\xc3\xa9t\xc3\xa9", value_string("\xe2\x98\x80")},
  };
}

inline std::vector<std::pair<std::string, Value>> all_arrays() {
  using enum ValueType;
  return {
      {"a.u8", array<uint64_t>(U8, {0, 255})},
      {"a.i8", array<int64_t>(I8, {-128, 127})},
      {"a.u16", array<uint64_t>(U16, {0, 65535})},
      {"a.i16", array<int64_t>(I16, {-32768, 32767})},
      {"a.u32", array<uint64_t>(U32, {0, UINT32_MAX})},
      {"a.i32", value_i32s({INT32_MIN, 0, INT32_MAX})},
      {"a.u64", array<uint64_t>(U64, {UINT64_MAX})},
      {"a.i64", array<int64_t>(I64, {INT64_MIN, INT64_MAX})},
      {"a.f32", value_f32s({0.5, -kInfinity})},
      {"a.f64", array<double>(F64, {0.1, -2e300})},
      {"a.bool", array<bool>(Bool, {true, false, true})},
      {"a.string", value_strings({"", "a", "a string that is longer than the short ones"})},
      {"a.none", array<uint64_t>(U32, {})},
      {"a.no.strings", value_strings({})},
  };
}

inline SampleFile with_tensors(std::string name, std::vector<std::pair<std::string, Value>> metadata,
                               std::vector<TensorSpec> tensors, uint64_t alignment) {
  SampleFile sample{std::move(name), {std::move(metadata), std::move(tensors), alignment}, {}};
  uint8_t next = 0;
  for (const TensorSpec& tensor : sample.spec.tensors) {
    std::vector<std::byte> bytes(tensor_bytes(tensor.format, tensor.shape).value());
    for (std::byte& byte : bytes) byte = std::byte{next++};
    sample.tensors.push_back(std::move(bytes));
  }
  return sample;
}

inline std::vector<TensorSpec> one_of_each_format() {
  std::vector<TensorSpec> tensors;
  for (const FormatInfo& format : all_formats())
    tensors.push_back({std::string(format.name) + ".weight", format.format, {format.block, 2}});
  return tensors;
}

// The same files on every call.
inline std::vector<SampleFile> sample_files() {
  const std::vector<TensorSpec> ranks = {{"rank1", Format::F32, {3}},
                                         {"rank2", Format::F16, {5, 2}},
                                         {"rank3", Format::I8, {1, 2, 3}},
                                         {"rank4", Format::Q8_0, {32, 1, 2, 1}}};
  return {
      with_tensors("nothing", {}, {}, 32),
      with_tensors("scalars", all_scalars(), {}, 32),
      with_tensors("arrays", all_arrays(), {}, 32),
      with_tensors("ranks", {}, ranks, 8),
      with_tensors("alignment_256", {{"general.alignment", value_u32(256)}}, ranks, 256),
      with_tensors("alignment_i32", {{"general.alignment", scalar(ValueType::I32, int64_t{64})}}, ranks, 64),
      with_tensors("formats", {{"general.name", value_string("formats")}}, one_of_each_format(), 64),
  };
}

// Gives the sample's tensors, where they lie.
inline TensorSource source_of(const SampleFile& sample) {
  return [&sample](size_t index) -> Result<std::span<const std::byte>> { return std::span(sample.tensors.at(index)); };
}

}  // namespace tw::gguf
