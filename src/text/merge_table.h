#pragma once

// The merges of a byte-pair tokenizer by the pair that they merge.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/vocabulary.h"

namespace tw::text {

struct MergeRule {
  Token left = -1, right = -1;  // negative: no rule
  uint32_t rank = 0;
  Token made = -1;
};

class MergeTable {
 public:
  MergeTable() : MergeTable(0) {}
  // Room for `rules` rules.
  explicit MergeTable(size_t rules) : slots_(std::bit_ceil(2 * rules + 2)) {}

  // Of rules for one pair the first counts. Requires tokens of at least 0, and room.
  void add(const MergeRule& rule) {
    MergeRule& slot = slots_[place_of(rule.left, rule.right)];
    if (slot.left < 0) slot = rule;
  }

  // The rule of a pair, or null.
  [[nodiscard]] const MergeRule* find(Token left, Token right) const {
    if (left < 0 || right < 0) return nullptr;
    const MergeRule& slot = slots_[place_of(left, right)];
    return slot.left < 0 ? nullptr : &slot;
  }

 private:
  // A pair lies at its hash or in the next free slot after it; at most half of the slots are taken.
  [[nodiscard]] size_t place_of(Token left, Token right) const {
    const uint64_t pair = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    const size_t mask = slots_.size() - 1;
    // A multiplicative hash whose high bits depend on all of the pair.
    for (size_t at = (pair * 0x9e3779b97f4a7c15U >> 32) & mask;; at = (at + 1) & mask) {
      const MergeRule& slot = slots_[at];
      if (slot.left < 0 || (slot.left == left && slot.right == right)) return at;
    }
  }

  std::vector<MergeRule> slots_;  // a power of two of them
};

}  // namespace tw::text
