#pragma once

// Writes a GGUF version 3 file. Metadata and the tensor table are given first, tensor data in table order after.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
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
  // A power of two, 8 to 2^20. When it is not the format's default, 32, the key general.alignment is written last
  // unless the metadata has it; metadata that has another value is a Conflict.
  uint64_t alignment = 32;
};

// What the reader would refuse is refused before a byte is written: names, duplicates, shapes that are not whole
// blocks, values that do not fit their type. Writes to a temporary file beside `path` and renames it, so that a failure
// leaves no half file.
Result<void> write(const std::filesystem::path& path, const FileSpec& spec, const TensorSource& source);
// The same with the data of all tensors left out: the file has its full size, and where the file system can it holds no
// bytes for the data, which reads as zeros.
Result<void> write_holes(const std::filesystem::path& path, const FileSpec& spec);
// As write, into memory.
Result<std::vector<std::byte>> write_bytes(const FileSpec& spec, const TensorSource& source);

}  // namespace tw::gguf
