#include "lane/intervals.h"

#include <algorithm>
#include <iterator>

namespace tw::lane {

void Intervals::insert(uint64_t from, uint64_t to) {
  if (from >= to) return;
  auto at = ends_.upper_bound(from);
  if (at != ends_.begin() && std::prev(at)->second >= from) {
    --at;
    from = at->first;
  }
  while (at != ends_.end() && at->first <= to) {
    to = std::max(to, at->second);
    at = ends_.erase(at);
  }
  ends_[from] = to;
}

bool Intervals::covers(uint64_t from, uint64_t to) const {
  if (from >= to) return true;
  const auto after = ends_.upper_bound(from);
  return after != ends_.begin() && std::prev(after)->second >= to;
}

bool Intervals::meets(uint64_t from, uint64_t to) const {
  if (from >= to) return false;
  const auto after = ends_.lower_bound(to);
  return after != ends_.begin() && std::prev(after)->second > from;
}

}  // namespace tw::lane
