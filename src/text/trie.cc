#include "text/trie.h"

#include <algorithm>

namespace tw::text {
namespace {

// Texts [begin, end) of the sorted list share their first `depth` bytes, which lead to `node`.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t depth = 0;
  uint32_t node = 0;
};

}  // namespace

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> entries) : nodes_(1) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // Breadth first, so that the children of a node are appended together.
  std::vector<Range> queue = {{0, entries.size(), 0, 0}};
  for (size_t next = 0; next < queue.size(); ++next) {
    Range range = queue[next];
    while (range.begin < range.end && entries[range.begin].first.size() == range.depth) {
      if (range.depth > 0) nodes_[range.node].value = entries[range.begin].second;
      ++range.begin;
    }
    nodes_[range.node].first_child = static_cast<uint32_t>(nodes_.size());
    for (size_t begin = range.begin; begin < range.end;) {
      const char byte = entries[begin].first[range.depth];
      size_t end = begin;
      while (end < range.end && entries[end].first[range.depth] == byte) ++end;
      queue.push_back({begin, end, range.depth + 1, static_cast<uint32_t>(nodes_.size())});
      nodes_.push_back({.byte = static_cast<uint8_t>(byte)});
      ++nodes_[range.node].children;
      begin = end;
    }
  }
}

const Trie::Node* Trie::child(const Node& node, uint8_t byte) const {
  const auto begin = nodes_.begin() + node.first_child;
  const auto end = begin + node.children;
  const auto hit = std::lower_bound(begin, end, byte, [](const Node& n, uint8_t b) { return n.byte < b; });
  return hit != end && hit->byte == byte ? &*hit : nullptr;
}

}  // namespace tw::text
