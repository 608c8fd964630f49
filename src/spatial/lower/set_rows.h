#pragma once

// Rows written into a table from some row on: one, or a block of as many as the source has. What is not written stays
// as it was, bit for bit.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// The table lies flat and is rewritten whole, as a new version; by blocks of columns when wide.
Result<Program> set_rows_flat(const graph::SetRows& spec, const OpView& op);
// Requires whole(cols): the rows' tiles are written in place, an item a block of them.
Result<Program> set_rows_tile(const graph::SetRows& spec, const OpView& op);
// The table lies dense, the source is one row: an item reads a block of its tile row, changes the row in it and writes
// it back.
Result<Program> set_row_dense(const graph::SetRows& spec, const OpView& op);
// The table lies dense, and so does the source of one row or more. As many tile rows as the block can touch are read
// and written back, an item a block of one of them.
Result<Program> set_block_dense(const graph::SetRows& spec, const OpView& op);

}  // namespace tw::spatial::lower
