#pragma once

// One GGUF file, whole or a part of a split checkpoint, read and checked.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "gguf/tensor_table.h"

namespace tw::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr uint64_t kDefaultAlignment = 32;
inline constexpr uint64_t kMinAlignment = 8;  // what the widest number of a tensor needs
inline constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;

constexpr bool is_alignment(uint64_t value) {
  return value >= kMinAlignment && value <= kMaxAlignment && (value & (value - 1)) == 0;
}

struct ParsedFile {
  uint32_t version = 0;
  uint64_t alignment = kDefaultAlignment;
  std::vector<Entry> entries;
  std::vector<TensorRecord> tensors;  // with info.file 0; offsets from the start of the file
};

Result<ParsedFile> parse_file(std::span<const std::byte> bytes, std::string_view label);

}  // namespace tw::gguf
