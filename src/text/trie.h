#pragma once

// Prefix tree over token texts: which tokens begin the text that stands at a place.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::text {

class Trie {
 public:
  static constexpr int32_t kNone = -1;
  struct Node {
    uint32_t first_child = 0;  // children lie side by side, by ascending byte
    uint16_t children = 0;
    uint8_t byte = 0;
    int32_t value = kNone;  // of the text that ends here
  };

  Trie() : nodes_(1) {}
  // Values are at least 0. Of equal texts the last in the list counts; an empty text is left out.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> entries);

  [[nodiscard]] const Node& root() const { return nodes_[0]; }
  // The child of `node` at `byte`, or null.
  [[nodiscard]] const Node* child(const Node& node, uint8_t byte) const;

 private:
  std::vector<Node> nodes_;
};

}  // namespace tw::text
