#include "base/near_name.h"

#include <algorithm>
#include <array>

namespace tw {
namespace {

constexpr size_t kLongest = 64;

// Edits that turn a into b, neighbours swapped counting as one. Requires both at most kLongest long.
size_t edits(std::string_view a, std::string_view b) {
  using Line = std::array<size_t, kLongest + 1>;
  Line before{}, last{}, line{};
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    line[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      line[j] = std::min({last[j] + 1, line[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        line[j] = std::min(line[j], before[j - 2] + 1);
    }
    before = last;
    last = line;
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> near_name(std::string_view name, std::span<const std::string_view> known) {
  if (name.size() > kLongest) return std::nullopt;
  size_t fewest = 1 + std::max<size_t>(1, name.size() / 3);
  std::optional<std::string_view> nearest;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    const size_t needed = edits(name, candidate);
    // Replacing the whole name is no likeness.
    if (needed >= fewest || needed >= std::max(name.size(), candidate.size())) continue;
    fewest = needed;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace tw
