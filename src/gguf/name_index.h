#pragma once

// Finds a name in a list: O(log n), built once in O(n log n).

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::gguf {

class NameIndex {
 public:
  NameIndex() = default;
  // The names' text must outlive the index.
  explicit NameIndex(const std::vector<std::string_view>& names);

  // The position in the list of the first item with that name.
  [[nodiscard]] std::optional<size_t> find(std::string_view name) const;
  // The positions of two items with the same name: the earliest second one, and the first of that name.
  [[nodiscard]] std::optional<std::pair<size_t, size_t>> duplicate() const;

 private:
  std::vector<std::pair<std::string_view, size_t>> sorted_;
};

}  // namespace tw::gguf
