#pragma once

// The rules for the shape of a tensor, the same for reading and writing.

#include <cstdint>
#include <span>

#include "base/result.h"
#include "gguf/format.h"

namespace tw::gguf {

inline constexpr uint32_t kMaxDimensions = 4;

// The bytes of a tensor of that format and shape. Refuses (Malformed, without a subject) what is not 1 to 4 dimensions
// of at least 1, what does not fit 63 bits, and a row that is not whole blocks.
Result<uint64_t> tensor_bytes(Format format, std::span<const uint64_t> shape);

}  // namespace tw::gguf
