#pragma once

// Names in checkpoints: which ones a file may hold, and how one that it should not hold is shown.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::gguf {

inline constexpr size_t kMaxKeyBytes = 65535;
inline constexpr size_t kMaxTensorNameBytes = 255;

// What is wrong with a key or tensor name, as the end of a sentence, or nothing. A name has 1 to `max_bytes` bytes of
// valid UTF-8 without control characters, so that it can be printed, compared and looked up.
std::optional<std::string> name_fault(std::string_view text, size_t max_bytes);

// In double quotes, at most 80 bytes of it; quotes, backslashes, control characters and bytes that are not UTF-8
// escaped.
std::string quote(std::string_view text);

// Up to three of `names` that `wanted` may be a misspelling of, nearest first (by Levenshtein distance, at most a
// quarter of the length of `wanted`, and at least two).
std::vector<std::string_view> near_names(std::string_view wanted, const std::vector<std::string_view>& names);

}  // namespace tw::gguf
