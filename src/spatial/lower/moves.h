#pragma once

// Ops that put values elsewhere and change none: transpose, and the slice of every unit of a row.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// Flat, a band a row of the result; column-blocked when wide.
Result<Program> transpose_flat(const OpView& op);
// Dense, an item a tile. Refused on a tile that is not square.
Result<Program> transpose_tiles(const OpView& op);

// Flat, a band a unit; column-blocked when wide.
Result<Program> head_slice_flat(const graph::HeadSlice& op, const OpView& view);
// Dense, a band a unit of a row and a tile row an item; column-blocked when a row is wide.
Result<Program> head_slice_rows(const graph::HeadSlice& op, const OpView& view);
// Tiles are moved, a block of a unit's an item, of a flat row or of dense ones. Requires units, start and width to be
// whole tiles.
Result<Program> head_slice_tiles(const graph::HeadSlice& op, const OpView& view);

}  // namespace tw::spatial::lower
