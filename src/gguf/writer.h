#pragma once

// Writes a GGUF version 3 file. Metadata and the tensor table are given first, tensor data in table order after.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"

namespace tw::gguf {

struct TensorSpec {
  std::string name;
  Format format = Format::F32;
  std::vector<uint64_t> shape;
};

// Gives the bytes of tensor `index`, exactly bytes_of(format, values) of them, valid until the next call.
using TensorSource = std::function<Result<std::span<const std::byte>>(size_t index)>;

struct FileSpec {
  std::vector<std::pair<std::string, Value>> metadata;
  std::vector<TensorSpec> tensors;
  uint64_t alignment = 32;  // a power of two, at least 8
};

// Writes to a temporary file beside `path` and renames it, so that a failure leaves no half file.
Result<void> write(const std::filesystem::path& path, const FileSpec& spec, const TensorSource& source);
// The same into memory.
Result<std::vector<std::byte>> write_bytes(const FileSpec& spec, const TensorSource& source);

// Convenience makers of values.
Value value_u32(uint32_t v);
Value value_u64(uint64_t v);
Value value_f32(float v);
Value value_bool(bool v);
Value value_string(std::string v);
Value value_strings(std::vector<std::string> v);
Value value_f32s(std::vector<double> v);
Value value_i32s(std::vector<int64_t> v);

}  // namespace tw::gguf
