#include "spatial/certify/tiles.h"

namespace tw::spatial {
namespace {

uint64_t saturated_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

Interval up_to(uint64_t count) { return {0, to_signed(count == 0 ? 0 : count - 1)}; }
Interval fixed_at(uint64_t value) { return {to_signed(value), to_signed(value)}; }

Interval values_of(const MoveNest& nest, LoopVar var, const WorkItem& item) {
  switch (var) {
    case LoopVar::ItemY: return fixed_at(item.y);
    case LoopVar::ItemX: return fixed_at(item.x);
    case LoopVar::SubH: return up_to(nest.sub_h);
    case LoopVar::SubW: return up_to(nest.sub_w);
    case LoopVar::KBlock: break;
  }
  return up_to(nest.blocks);
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

Interval index_reach(const TileAddr& addr) {
  if (!addr.indirect) return {0, 0};
  const int64_t per = to_signed(addr.indirect->elems_per_tile);
  const Interval tiles{floor_quotient(addr.indirect->low, per), floor_quotient(addr.indirect->high, per)};
  return tiles * fixed_at(addr.indirect->tile_stride);
}

Interval tile_range(const Program& program, const AccessPattern& pattern, const WorkItem& item) {
  const MoveNest nest = nest_of(program, pattern);
  Interval range = fixed_at(pattern.origin.base) + index_reach(pattern.origin);
  for (const Step& step : pattern.origin.steps) range = range + fixed_at(step.stride) * values_of(nest, step.var, item);
  range = range + fixed_at(pattern.stride_h) * up_to(pattern.block_h);
  return range + fixed_at(pattern.stride_w) * up_to(pattern.block_w);
}

Interval tile_range(const Program& program, const AccessPattern& pattern) {
  const TileAddr& origin = pattern.origin;
  if (program.work.items.empty()) return {0, 0};
  // Without the items' coordinates the first one speaks for all.
  Interval all = tile_range(program, pattern, program.work.items.front());
  if (!origin.names(LoopVar::ItemY) && !origin.names(LoopVar::ItemX)) return all;
  for (const WorkItem& item : program.work.items) all = hull(all, tile_range(program, pattern, item));
  return all;
}

}  // namespace tw::spatial
