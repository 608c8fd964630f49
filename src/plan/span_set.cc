#include "plan/span_set.h"

#include <algorithm>
#include <iterator>

namespace tw::plan {

void SpanSet::insert(uint64_t from, uint64_t to) {
  if (from >= to) {
    empty_.insert(from);
    return;
  }
  auto at = ends_.lower_bound(from);
  if (at != ends_.begin() && std::prev(at)->second > from) {
    --at;
    from = at->first;
  }
  while (at != ends_.end() && at->first < to) {
    to = std::max(to, at->second);
    at = ends_.erase(at);
  }
  ends_[from] = to;
}

bool SpanSet::meets(uint64_t from, uint64_t to) const {
  const auto after = ends_.lower_bound(to);
  if (after != ends_.begin() && std::prev(after)->second > from) return true;
  const auto inside = empty_.upper_bound(from);
  return inside != empty_.end() && *inside < to;
}

}  // namespace tw::plan
