#pragma once

// Which tiles a load or store touches, item by item.

#include <cstdint>

#include "spatial/certify/interval.h"
#include "spatial/program.h"

namespace tw::spatial {

// Values that each loop variable the address names takes, 1 for those it does not.
struct MoveNest {
  uint64_t sub_h = 1;
  uint64_t sub_w = 1;
  uint64_t blocks = 1;
};
MoveNest nest_of(const Program& program, const AccessPattern& pattern);

// Tiles of all issues of the movement for one item, saturating.
uint64_t tiles_an_item(const Program& program, const AccessPattern& pattern);
// The same over all items.
uint64_t tiles_of_items(const Program& program, const AccessPattern& pattern);
// More tiles than this are not walked: no section of a real step comes near.
inline constexpr uint64_t kMostTilesWalked = uint64_t{1} << 26;

// floor(v / elems_per_tile) * tile_stride at both ends of the bound; {0, 0} for an address without an index.
Interval index_reach(const TileAddr& addr);
// The first and last tile of an item, saturating.
Interval tile_range(const Program& program, const AccessPattern& pattern, const WorkItem& item);
// The same over all items.
Interval tile_range(const Program& program, const AccessPattern& pattern);

// visit(tile, sub_block, block) for every tile an item touches, the index at the low end of its bound. sub_block and
// block are 0 where the address does not name them. Requires addresses that do not wrap.
template <class Visit>
void each_tile(const Program& program, const AccessPattern& pattern, const WorkItem& item, Visit&& visit) {
  const MoveNest nest = nest_of(program, pattern);
  const auto moved = static_cast<uint64_t>(index_reach(pattern.origin).low);
  LoopPoint at{item.y, item.x};
  for (uint64_t h = 0; h < nest.sub_h; ++h)
    for (uint64_t w = 0; w < nest.sub_w; ++w)
      for (uint64_t block = 0; block < nest.blocks; ++block) {
        at[static_cast<size_t>(LoopVar::SubH)] = h;
        at[static_cast<size_t>(LoopVar::SubW)] = w;
        at[static_cast<size_t>(LoopVar::KBlock)] = block;
        const uint64_t origin = affine_address(pattern.origin, at) + moved;
        const uint64_t sub_block = h * program.work.plan.sub_w() + w;
        for (uint64_t y = 0; y < pattern.block_h; ++y)
          for (uint64_t x = 0; x < pattern.block_w; ++x)
            visit(origin + y * pattern.stride_h + x * pattern.stride_w, sub_block, block);
      }
}

}  // namespace tw::spatial
