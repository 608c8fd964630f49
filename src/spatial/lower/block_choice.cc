#include "spatial/lower/block_choice.h"

namespace tw::spatial::lower {

std::vector<uint64_t> page_sizes(uint64_t whole, const Target& target) {
  std::vector<uint64_t> blocks;
  for (uint64_t b = std::min<uint64_t>(whole, target.accumulator_tiles); b > 0; --b)
    if (whole % b == 0) blocks.push_back(b);
  return blocks;
}

std::vector<uint64_t> block_sizes(uint64_t whole, uint64_t count, const Target& target, uint64_t extra) {
  std::vector<uint64_t> blocks = page_sizes(whole, target);
  const auto cost = [&](uint64_t block) {
    const uint64_t items = count / block;
    return (items + target.sites() - 1) / target.sites() * (block + extra);
  };
  std::stable_sort(blocks.begin(), blocks.end(), [&](uint64_t a, uint64_t b) { return cost(a) < cost(b); });
  return blocks;
}

}  // namespace tw::spatial::lower
