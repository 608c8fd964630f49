#pragma once

// Units of whole tiles, of a flat row or of dense rows: unit u is head u mod heads of tile row u / heads, and lies at
// tile u * tiles of the grid either way. An item (u, j) makes block j of unit u.

#include <vector>

#include "spatial/builder.h"
#include "spatial/target.h"

namespace tw::spatial::lower {

struct UnitTiles {
  uint64_t rows = 1;   // of the tensors: one, which is flat, or dense ones
  uint64_t heads = 1;  // units of a row
  uint64_t tiles = 1;  // of a unit
  uint64_t block = 1;  // tiles of an item

  [[nodiscard]] std::vector<WorkItem> items(const Target& target) const;
  [[nodiscard]] std::vector<Iter> space(const Target& target) const;
};

}  // namespace tw::spatial::lower
