#pragma once

// Rows read from a table: one, or one for each item of an index. Only what holds the rows is moved, however long the
// table. Of integers as of reals: nothing is computed but the row's place.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// ---- out = row of table: 1 x cols ----

// The row is in the middle of tiles: the window around it is loaded and the row taken out, by blocks of columns when
// wide(cols).
Result<Program> row_gather_flat(const graph::RowGather& spec, const OpView& op);
// Requires whole(cols): an item moves a block of the row's own tiles.
Result<Program> row_gather_tile(const graph::RowGather& spec, const OpView& op);
// The table lies dense: an item moves a block of the tile row that holds the row, and lifts the row out of it.
Result<Program> row_gather_dense(const graph::RowGather& spec, const OpView& op);

// ---- out = rows of table: 1 x m * cols ----

// The table is loaded whole. Blocks of columns when wide(m * cols).
Result<Program> rows_gather_flat(const OpView& op);
// Requires whole(cols): an item a block of a row's tiles.
Result<Program> rows_gather_tile(const OpView& op);

}  // namespace tw::spatial::lower
