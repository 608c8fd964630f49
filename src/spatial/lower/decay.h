#pragma once

// out[r][h] = (1 + e^(x[r][h] + bias[h]))^rate[h], as e^(rate * softplus(x + bias)): the base is above 1, so that its
// logarithm is of a positive number and both tails are exact.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// 1 x n flat, one item. Refused by the accumulator when wide(n).
Result<Program> decay_row(const OpView& op);
// An item a tile, of a flat row or, bias and rate spread over the rows, of a matrix.
Result<Program> decay_tiles(const OpView& op);

}  // namespace tw::spatial::lower
