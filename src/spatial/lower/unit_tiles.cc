#include "spatial/lower/unit_tiles.h"

namespace tw::spatial::lower {

std::vector<WorkItem> UnitTiles::items(const Target& target) const {
  const uint64_t tile_rows = (rows + target.tile.rows - 1) / target.tile.rows;
  std::vector<WorkItem> made = grouped_items(tile_rows * heads, tiles, block);
  for (WorkItem& item : made) {
    item.out.row = item.y / heads;
    item.out.col = item.y % heads * tiles + item.x * block;
  }
  return made;
}

std::vector<Iter> UnitTiles::space(const Target& target) const {
  return {spatial::rows(rows == 1 ? 1 : target.tile.rows), cols(block * target.tile.cols)};
}

}  // namespace tw::spatial::lower
