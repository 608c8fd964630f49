#pragma once

// Two tensors joined head by head: of every row and head a's unit, then b's.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// Flat, a band a unit of either; column-blocked when wide. A width of 0 joins nothing of that operand.
Result<Program> join_flat(const graph::Join& op, const OpView& view);
// Dense, up to two bands a head and a tile row an item; column-blocked when a row is wide.
Result<Program> join_rows(const graph::Join& op, const OpView& view);
// Tiles are moved, a block of a unit's an item, of a flat row or of dense ones. Requires both units to be whole tiles.
Result<Program> join_tiles(const graph::Join& op, const OpView& view);

}  // namespace tw::spatial::lower
