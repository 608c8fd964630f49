#include "spatial/certify/tiles.h"

namespace tw::spatial {
namespace {

uint64_t saturated_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

Interval up_to(uint64_t count) { return {0, to_signed(count == 0 ? 0 : count - 1)}; }
Interval fixed_at(uint64_t value) { return {to_signed(value), to_signed(value)}; }

bool of_item(LoopVar var) { return var == LoopVar::ItemY || var == LoopVar::ItemX; }

uint64_t count_of(const MoveNest& nest, LoopVar var) {
  if (var == LoopVar::SubH) return nest.sub_h;
  return var == LoopVar::SubW ? nest.sub_w : nest.blocks;
}

// The range without what the item adds.
Interval range_in_item(const Program& program, const AccessPattern& pattern) {
  const MoveNest nest = nest_of(program, pattern);
  Interval range = fixed_at(pattern.origin.base) + index_reach(pattern.origin);
  for (const Step& step : pattern.origin.steps)
    if (!of_item(step.var)) range = range + fixed_at(step.stride) * up_to(count_of(nest, step.var));
  range = range + fixed_at(pattern.stride_h) * up_to(pattern.block_h);
  return range + fixed_at(pattern.stride_w) * up_to(pattern.block_w);
}

int64_t added_by(const TileAddr& origin, const WorkItem& item) {
  int64_t tile = 0;
  for (const Step& step : origin.steps)
    if (of_item(step.var)) {
      const uint64_t at = step.var == LoopVar::ItemY ? item.y : item.x;
      tile = saturated_add(tile, saturated_mul(to_signed(step.stride), to_signed(at)));
    }
  return tile;
}

}  // namespace

MoveNest nest_of(const Program& program, const AccessPattern& pattern) {
  const BlockPlan& plan = program.work.plan;
  const TileAddr& origin = pattern.origin;
  MoveNest nest;
  // Naming one of the two issues the movement for every sub-block.
  if (origin.names(LoopVar::SubH) || origin.names(LoopVar::SubW)) {
    nest.sub_h = plan.sub_h();
    nest.sub_w = plan.sub_w();
  }
  if (origin.names(LoopVar::KBlock)) nest.blocks = plan.num_blocks;
  return nest;
}

uint64_t tiles_an_item(const Program& program, const AccessPattern& pattern) {
  const MoveNest nest = nest_of(program, pattern);
  uint64_t tiles = saturated_product(pattern.block_h, pattern.block_w);
  for (const uint64_t factor : {nest.sub_h, nest.sub_w, nest.blocks}) tiles = saturated_product(tiles, factor);
  return tiles;
}

uint64_t tiles_of_items(const Program& program, const AccessPattern& pattern) {
  return saturated_product(tiles_an_item(program, pattern), program.work.items.size());
}

Interval index_reach(const TileAddr& addr) {
  if (!addr.indirect) return {0, 0};
  const int64_t per = to_signed(addr.indirect->elems_per_tile);
  const Interval tiles{floor_quotient(addr.indirect->low, per), floor_quotient(addr.indirect->high, per)};
  return tiles * fixed_at(addr.indirect->tile_stride);
}

Interval tile_range(const Program& program, const AccessPattern& pattern, const WorkItem& item) {
  const int64_t added = added_by(pattern.origin, item);
  return range_in_item(program, pattern) + Interval{added, added};
}

Interval tile_range(const Program& program, const AccessPattern& pattern) {
  if (program.work.items.empty()) return {0, 0};
  Interval added{kMost, kLeast};
  for (const WorkItem& item : program.work.items) {
    const int64_t here = added_by(pattern.origin, item);
    added = hull(added, {here, here});
  }
  return range_in_item(program, pattern) + added;
}

}  // namespace tw::spatial
