#include "gguf/name_index.h"

#include <algorithm>

namespace tw::gguf {

NameIndex::NameIndex(const std::vector<std::string_view>& names) {
  sorted_.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) sorted_.emplace_back(names[i], i);
  std::ranges::sort(sorted_);
}

std::optional<size_t> NameIndex::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(sorted_, std::pair(name, size_t{0}));
  if (found == sorted_.end() || found->first != name) return std::nullopt;
  return found->second;
}

std::optional<std::pair<size_t, size_t>> NameIndex::duplicate() const {
  std::optional<std::pair<size_t, size_t>> earliest;
  for (size_t i = 1; i < sorted_.size(); ++i) {
    if (sorted_[i].first != sorted_[i - 1].first) continue;
    if (!earliest || sorted_[i].second < earliest->first)
      earliest = std::pair(sorted_[i].second, sorted_[i - 1].second);
  }
  return earliest;
}

}  // namespace tw::gguf
