#pragma once

// One body over the tiles of a rows x cols matrix, an item a tile: the tiling that a matrix product reads and writes.
// With one row the matrix is a flat row, and the form the blocked one.

#include <string>
#include <vector>

#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// How an operand covers the matrix: whole; its one row for every row; its one column for every column.
enum class Spread : uint8_t { None, Down, Across };

struct TileOperand {
  const OpTensor& tensor;
  std::string page;  // buffer in_PAGE, load load_PAGE
  Spread spread = Spread::None;
};

struct TileMap {
  std::string stage;
  std::string name;  // of the program
  uint64_t rows = 1;
  uint64_t cols = 1;
  std::vector<TileOperand> operands;
  Expr body;                 // of arg(i), operand i
  bool inside_only = false;  // the body may not be computed of padding, where every operand is 0
};

// Stored at the first operand's precision unless tensors say otherwise. A tensor that is two operands is loaded once.
Result<Program> tile_map(TileMap map, const OpView& op);

}  // namespace tw::spatial::lower
