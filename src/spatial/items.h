#pragma once

// The recurring work items and plans of sections (ops write them as formulas in y and x).

#include <cstdint>
#include <vector>

#include "spatial/program.h"

namespace tw::spatial {

// One item (0, 0) that owns `rows` x `cols` tiles from the first on.
std::vector<WorkItem> one_item(uint64_t cols, uint64_t rows = 1);
// A row of `tiles` in blocks: item (0, i) owns tiles i * block to (i + 1) * block. Requires block to divide tiles.
std::vector<WorkItem> row_items(uint64_t tiles, uint64_t block);
// `groups` rows of `tiles` one after the other in a flat row: item (u, j) owns block j of group u.
std::vector<WorkItem> grouped_items(uint64_t groups, uint64_t tiles, uint64_t block);
// A grid of one-tile items: item (i, j) owns tile (i, j).
std::vector<WorkItem> grid_items(uint64_t rows, uint64_t cols);

// Each item owns what the first one does, in one sub-block and one block; the grid covers rows x cols tiles of the
// result.
BlockPlan trivial_plan(const std::vector<WorkItem>& items, TileGrid result);
// Rows of tiles cut into blocks: an item owns 1 x block of row_tiles.
BlockPlan tile_row_plan(uint64_t row_tiles, uint64_t block, uint64_t rows = 1);
// Every item walks `chunks` sub-blocks of one tile, one below the other.
BlockPlan chunked_plan(uint64_t chunks, uint64_t items);

}  // namespace tw::spatial
