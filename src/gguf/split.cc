#include "gguf/split.h"

#include <fmt/format.h>

#include <algorithm>

#include "gguf/conversions.h"

namespace tw::gguf {
namespace {

constexpr std::string_view kNumberKey = "split.no";
constexpr std::string_view kCountKey = "split.count";
constexpr std::string_view kTensorsKey = "split.tensors.count";

const Entry* find(const std::vector<Entry>& entries, std::string_view key) {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &*found;
}

Result<uint64_t> required(const std::vector<Entry>& entries, std::string_view key, std::string_view label) {
  if (const Entry* entry = find(entries, key)) return to_u64(*entry, label);
  return refuse(RefusalKind::Missing, label, fmt::format("the file has {}, expected {} too", kCountKey, key));
}

std::string suffix(uint64_t number, uint64_t count) { return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count); }

}  // namespace

Result<std::optional<SplitPart>> split_part(const std::vector<Entry>& entries, std::string_view label) {
  const Entry* count = find(entries, kCountKey);
  if (!count) return std::optional<SplitPart>();
  SplitPart part;
  TW_TRY(part.count, to_u64(*count, label));
  TW_TRY(part.number, required(entries, kNumberKey, label));
  TW_TRY(part.tensors, required(entries, kTensorsKey, label));
  if (part.number >= part.count)
    return refuse(RefusalKind::Malformed, label,
                  fmt::format("at byte {}: {} is {} and {} is {}, expected the number to be below the count",
                              count->offset, kNumberKey, part.number, kCountKey, part.count));
  return std::optional(part);
}

Result<std::filesystem::path> part_path(const std::filesystem::path& path, const SplitPart& part, uint64_t number) {
  const std::string name = path.filename().string();
  const std::string expected = suffix(part.number, part.count);
  if (!name.ends_with(expected))
    return refuse(RefusalKind::Conflict, path.string(),
                  fmt::format("the file says it is part {} of {}, expected its name to end in {}", part.number + 1,
                              part.count, expected),
                  "Give the parts their names back; the others are looked for beside this one");
  const std::string prefix = name.substr(0, name.size() - expected.size());
  return path.parent_path() / (prefix + suffix(number, part.count));
}

}  // namespace tw::gguf
