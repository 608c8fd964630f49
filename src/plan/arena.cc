#include "plan/arena.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace tw::plan {

namespace {

// The free gaps of an arena, by place and by size, joined with their neighbours when they are given back.
class Gaps {
 public:
  uint64_t take(uint64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) return grow(bytes);
    const auto [size, at] = *fit;
    erase(at);
    if (size > bytes) insert(at + bytes, size - bytes);
    return at;
  }

  void give_back(uint64_t at, uint64_t bytes) {
    const auto after = by_place_.lower_bound(at);
    if (after != by_place_.end() && after->first == at + bytes) {
      bytes += after->second;
      erase(after->first);
    }
    const auto next = by_place_.lower_bound(at);
    if (next != by_place_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        bytes += before->second;
        erase(at);
      }
    }
    insert(at, bytes);
  }

  [[nodiscard]] uint64_t end() const { return end_; }

 private:
  // A gap at the end of the arena is used up before the arena grows.
  uint64_t grow(uint64_t bytes) {
    uint64_t at = end_;
    if (!by_place_.empty() && by_place_.rbegin()->first + by_place_.rbegin()->second == end_) {
      at = by_place_.rbegin()->first;
      erase(at);
    }
    end_ = at + bytes;
    return at;
  }
  void insert(uint64_t at, uint64_t bytes) {
    by_place_[at] = bytes;
    by_size_.insert({bytes, at});
  }
  void erase(uint64_t at) {
    const auto found = by_place_.find(at);
    by_size_.erase({found->second, at});
    by_place_.erase(found);
  }

  std::map<uint64_t, uint64_t> by_place_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t end_ = 0;
};

uint64_t rounded(uint64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

}  // namespace

uint64_t place_pieces(std::vector<Piece>& pieces) {
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Piece &p = pieces[a], &q = pieces[b];
    if (p.first != q.first) return p.first < q.first;
    return p.bytes != q.bytes ? p.bytes > q.bytes : a < b;
  });
  Gaps gaps;
  std::set<std::pair<uint64_t, size_t>> live;  // (last, piece)
  for (const size_t i : order) {
    while (!live.empty() && live.begin()->first < pieces[i].first) {
      const Piece& dead = pieces[live.begin()->second];
      gaps.give_back(dead.at, rounded(dead.bytes));
      live.erase(live.begin());
    }
    if (pieces[i].bytes == 0) continue;
    pieces[i].at = gaps.take(rounded(pieces[i].bytes));
    live.insert({pieces[i].last, i});
  }
  return gaps.end();
}

}  // namespace tw::plan
