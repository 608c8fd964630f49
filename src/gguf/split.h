#pragma once

// Checkpoints split over several files, PREFIX-00001-of-00003.gguf to PREFIX-00003-of-00003.gguf. The first has all the
// metadata; each says by `split.*` keys which part it is.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"

namespace tw::gguf {

struct SplitPart {
  uint64_t number = 0;  // from 0
  uint64_t count = 1;
  uint64_t tensors = 0;  // in all parts together

  bool operator==(const SplitPart&) const = default;
};

// Nothing when the file has no key split.count.
Result<std::optional<SplitPart>> split_part(const std::vector<Entry>& entries, std::string_view label);

// The path of part `number` of the set that `path`, which is part `part`, belongs to. Refuses (Conflict) when the name
// of `path` does not say what its metadata says.
Result<std::filesystem::path> part_path(const std::filesystem::path& path, const SplitPart& part, uint64_t number);

}  // namespace tw::gguf
