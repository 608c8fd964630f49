#pragma once

// How many tiles, or rows, an item takes: as many as a page and a site hold, unless sites would stand idle.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spatial/sizing.h"
#include "spatial/target.h"

namespace tw::spatial::lower {

// Divisors of `whole` that a computed page may have: the one that leaves the busiest site the least to do first, of
// equals the larger. There are `count` things to do in all, `whole` divides it, and an item has `extra` of its own.
std::vector<uint64_t> block_sizes(uint64_t whole, uint64_t count, const Target& target, uint64_t extra = 0);
// The same, the larger first whatever sites do.
std::vector<uint64_t> page_sizes(uint64_t whole, const Target& target);

// build(block, pages) with the first of the blocks whose section fits a site, with two pages or with one.
template <class Build>
Result<Program> first_fitting(const std::vector<uint64_t>& blocks, const Target& target, Build&& build) {
  for (const uint64_t block : blocks) {
    Result<Program> section = paged(target, [&](uint32_t pages) { return build(block, pages); });
    if (!section || fits(*section, target)) return section;
  }
  return within(build(*std::min_element(blocks.begin(), blocks.end()), uint32_t{1}), target);
}

}  // namespace tw::spatial::lower
