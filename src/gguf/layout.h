#pragma once

// The bytes of a GGUF version 3 file up to the tensor data.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gguf/writer.h"

namespace tw::gguf {

struct Layout {
  std::vector<std::byte> head;         // header, metadata and tensor table, padded to the alignment
  std::vector<uint64_t> tensor_bytes;  // by tensor, without padding
  uint64_t alignment = 0;
};

// Refuses what the reader would refuse.
Result<Layout> lay_out(const FileSpec& spec);

}  // namespace tw::gguf
