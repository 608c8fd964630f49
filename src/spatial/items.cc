#include "spatial/items.h"

#include "base/check.h"

namespace tw::spatial {

std::vector<WorkItem> one_item(uint64_t cols, uint64_t rows) { return {{0, 0, {0, 0, rows, cols}}}; }

std::vector<WorkItem> row_items(uint64_t tiles, uint64_t block) {
  TW_CHECK(block > 0 && tiles % block == 0, "{} tiles in blocks of {}", tiles, block);
  std::vector<WorkItem> items;
  for (uint64_t i = 0; i < tiles / block; ++i) items.push_back({0, i, {0, i * block, 1, block}});
  return items;
}

std::vector<WorkItem> grouped_items(uint64_t groups, uint64_t tiles, uint64_t block) {
  TW_CHECK(block > 0 && tiles % block == 0, "{} tiles in blocks of {}", tiles, block);
  std::vector<WorkItem> items;
  for (uint64_t u = 0; u < groups; ++u)
    for (uint64_t j = 0; j < tiles / block; ++j) items.push_back({u, j, {0, u * tiles + j * block, 1, block}});
  return items;
}

std::vector<WorkItem> grid_items(uint64_t rows, uint64_t cols) {
  std::vector<WorkItem> items;
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < cols; ++j) items.push_back({i, j, {i, j, 1, 1}});
  return items;
}

BlockPlan trivial_plan(const std::vector<WorkItem>& items, TileGrid result) {
  const TileRect rect = items.empty() ? TileRect{} : items.front().out;
  BlockPlan plan;
  plan.per_site_m = plan.block_m = rect.rows;
  plan.per_site_n = plan.block_n = rect.cols;
  plan.grid_m = rect.rows > 0 ? result.rows / rect.rows : 0;
  plan.grid_n = rect.cols > 0 ? result.cols / rect.cols : 0;
  return plan;
}

BlockPlan tile_row_plan(uint64_t row_tiles, uint64_t block, uint64_t rows) {
  TW_CHECK(block > 0 && row_tiles % block == 0, "{} tiles in blocks of {}", row_tiles, block);
  return {.per_site_n = block, .grid_m = rows, .grid_n = row_tiles / block, .block_n = block};
}

BlockPlan chunked_plan(uint64_t chunks, uint64_t items) { return {.per_site_m = chunks, .grid_m = items}; }

}  // namespace tw::spatial
