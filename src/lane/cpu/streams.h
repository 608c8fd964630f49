#pragma once

// Items of a product of one row taken from several places at once, so that a thread reads several streams of weights
// (product_row.h says why).

#include "lane/cpu/product.h"

namespace tw::lane::cpu {

// `count` items, `apart` from one another.
struct StreamItems {
  uint64_t first, apart;
  int count;
  uint64_t operator[](int i) const { return first + static_cast<uint64_t>(i) * apart; }
};

// Cuts a range into `most` equal runs and gives out one item of each in turn, then the few items that are left.
template <class Work>
TW_INLINE inline void for_streams(Range range, int most, Work work) {
  for (uint64_t begin = range.begin; begin < range.end;) {
    const uint64_t count = least(range.end - begin, static_cast<uint64_t>(most)), each = (range.end - begin) / count;
    for (uint64_t i = 0; i < each; ++i) work(StreamItems{begin + i, each, static_cast<int>(count)});
    begin += each * count;
  }
}

// Where panel `half` of each item begins. The last item may have one panel less than the others; how many have it.
TW_INLINE inline int stream_panels(const Packed& w, const StreamItems& items, uint64_t panels, uint64_t half,
                                   const std::byte** at) {
  int count = 0;
  for (; count < items.count && items[count] * panels + half < w.group_panels(); ++count)
    at[count] = w.data + w.panel_offset(items[count] * panels + half);
  return count;
}

}  // namespace tw::lane::cpu
