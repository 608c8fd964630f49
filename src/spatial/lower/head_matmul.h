#pragma once

// A matrix product of its own for every head: out[r][h][o] = sum over e of x[r][h][e] * W_h[e][o]. The weights' rows
// are the heads' inputs or (rows_out) their outputs; with `shared` every head multiplies the row's one unit. Every form
// adds in ascending e.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// Everything in one item, flat. Refused by the accumulator when the result is wide, by local memory when the weights
// are too many.
Result<Program> head_matmul_flat(const graph::HeadMatmul& op, const OpView& view);
// One row: an item computes a tile of a head's outputs, and the weights come a tile row or column at a time. Requires a
// square tile, and inputs and outputs of a head that are whole tiles.
Result<Program> head_matmul_tiled(const graph::HeadMatmul& op, const OpView& view);
// The same of several rows, dense: an item walks the tile rows of its tile column.
Result<Program> head_matmul_rows(const graph::HeadMatmul& op, const OpView& view);

}  // namespace tw::spatial::lower
