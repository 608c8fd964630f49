#pragma once

// Maps of one element: y = f(x), as a whole row, a tile an item, or over the tiles of a matrix.

#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// f in its datapath. `name` names stages and programs.
struct UnaryMap {
  std::string name;
  Expr body;  // of arg(0)
};

// x: 1 x n flat. Refused by the accumulator when wide(n).
Result<Program> unary_row(const UnaryMap& map, const OpView& op);
// x: 1 x n flat, an item a tile.
Result<Program> unary_blocked(const UnaryMap& map, const OpView& op);
// x: rows x cols dense, an item a tile: the tiling a matrix product reads and writes.
Result<Program> unary_matrix(const UnaryMap& map, const OpView& op);
// The form that the shape asks for.
Result<Lowered> lower_unary(const UnaryMap& map, const OpView& op);

}  // namespace tw::spatial::lower
