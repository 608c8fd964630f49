#pragma once

// Rotary embedding: every unit of a row turned by the angles of its row of the tables, from the row of the position on.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// The forms take the position of an op that names none: the row of the tables, from 1, that the first row of x is
// turned by. Refused when it is none that the tables have for every row.

// x a flat row: three bands of columns a unit, by blocks of columns when wide. Of the tables the block's rows alone are
// loaded.
Result<Program> rope_flat(const graph::Rope& spec, const OpView& op, uint64_t position = 1);
// An item for each run of units that is whole tiles: one, or as many as come to the end of a tile. Requires
// rope_heads_an_item() > 0.
Result<Program> rope_heads(const graph::Rope& spec, const OpView& op, uint64_t position = 1);

// Units of an item of rope_heads(): the fewest that are whole tiles; 0 when a row has no such runs, or they do not fit
// a page.
uint64_t rope_heads_an_item(const graph::Rope& spec, const OpView& op);

}  // namespace tw::spatial::lower
