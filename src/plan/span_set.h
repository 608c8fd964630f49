#pragma once

// A set of half-open spans of one array that answers whether a further span meets one of them.

#include <cstdint>
#include <map>
#include <set>

namespace tw::plan {

// Two spans meet when each begins before the other's end. So an empty span meets one that goes on on both sides of it,
// and never another empty one. Spans that meet are kept as one; a call costs the logarithm of the spans kept, an insert
// also what it joins.
class SpanSet {
 public:
  void insert(uint64_t from, uint64_t to);
  [[nodiscard]] bool meets(uint64_t from, uint64_t to) const;

 private:
  std::map<uint64_t, uint64_t> ends_;  // by start; no two of them meet, but they may touch
  std::set<uint64_t> empty_;
};

}  // namespace tw::plan
