#include "model/pair_order.h"

#include <numeric>

namespace tw::model {

std::vector<uint32_t> split_half_order(const PairRows& rows) {
  std::vector<uint32_t> order(uint64_t{rows.heads} * rows.width);
  std::iota(order.begin(), order.end(), rows.first);
  const uint32_t half = rows.rotated / 2;
  for (uint32_t head = 0; head < rows.heads; ++head) {
    const uint32_t run = head * rows.width + rows.from;
    for (uint32_t i = 0; i < half; ++i) {
      order[run + i] = rows.first + run + 2 * i;
      order[run + half + i] = rows.first + run + 2 * i + 1;
    }
  }
  return order;
}

}  // namespace tw::model
