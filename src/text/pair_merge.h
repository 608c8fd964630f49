#pragma once

// The merging loop that SentencePiece-style and byte-pair tokenizers share: symbols in a row, of which neighbours are
// merged two at a time, best priority first, leftmost first among equals, until no pair merges.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "text/vocabulary.h"

namespace tw::text {

inline constexpr Token kNoToken = -1;

struct Symbol {
  size_t begin = 0;  // bytes [begin, end) of the text
  size_t end = 0;
  Token token = kNoToken;  // kNoToken when the bytes are no token
};

template <class Priority>
struct Merge {
  Priority priority;  // less is better; a total order
  Token token;        // what the pair becomes
};

// Merges in place. lookup(left, right) answers what a pair of neighbours merges to, or nothing.
// Cost: O(n log n) and O(n) lookups for n symbols.
template <class Priority, class Lookup>
void merge_pairs(std::vector<Symbol>& symbols, const Lookup& lookup) {
  struct Candidate {
    Priority priority;
    size_t left;
    size_t middle, end;  // the pair is [left.begin, middle) and [middle, end)
    Token token;
    bool operator<(const Candidate& other) const {  // the top of a std::priority_queue is its greatest
      return priority != other.priority ? priority > other.priority : left > other.left;
    }
  };
  struct Link {
    size_t previous, next;
    bool alive;
  };
  constexpr size_t kEnd = SIZE_MAX;
  const size_t count = symbols.size();
  std::vector<Link> links(count);
  std::priority_queue<Candidate> queue;
  const auto offer = [&](size_t left, size_t right) {
    if (left == kEnd || right == kEnd) return;
    const std::optional<Merge<Priority>> merge = lookup(symbols[left], symbols[right]);
    if (merge) queue.push({merge->priority, left, symbols[right].begin, symbols[right].end, merge->token});
  };
  for (size_t i = 0; i < count; ++i) links[i] = {i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1, true};
  for (size_t i = 1; i < count; ++i) offer(i - 1, i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const size_t right = links[best.left].next;
    if (!links[best.left].alive || right == kEnd) continue;
    if (symbols[right].begin != best.middle || symbols[right].end != best.end) continue;  // one of them has grown
    symbols[best.left].end = best.end;
    symbols[best.left].token = best.token;
    links[right].alive = false;
    links[best.left].next = links[right].next;
    if (links[right].next != kEnd) links[links[right].next].previous = best.left;
    offer(links[best.left].previous, best.left);
    offer(best.left, links[best.left].next);
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (links[i].alive) symbols[kept++] = symbols[i];
  }
  symbols.resize(kept);
}

}  // namespace tw::text
