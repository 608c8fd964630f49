#pragma once

// Arithmetic on two tensors of one shape, and on a tensor and a row or a column that is spread over it. A quotient of
// reals is a * (1 / b); integers are exact, their quotient rounded down.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// 1 x n flat, one item. Refused by the accumulator when wide(n).
Result<Program> elementwise_row(const graph::Elementwise& op, const OpView& view);
// An item a tile, of a flat row or of a matrix.
Result<Program> elementwise_blocked(const graph::Elementwise& op, const OpView& view);
Result<Program> elementwise_matrix(const graph::Elementwise& op, const OpView& view);

// Flat: a row after a row of a, one band each; column-blocked when the whole is wide.
Result<Program> row_broadcast_flat(const graph::RowBroadcast& op, const OpView& view);
// An item a tile of the matrix.
Result<Program> row_broadcast_tiles(const graph::RowBroadcast& op, const OpView& view);

}  // namespace tw::spatial::lower
