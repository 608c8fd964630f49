#pragma once

// Column blocking: a pointwise stage over a row that is too wide for a page, as one item for each block of its columns.
// A body cannot know its item, so what depends on it comes as data: a table with a tile (or a few) an item that holds
// the item's first column o and each bound of the stage less o. Maps that follow the column are moved by o, bounds are
// taken from the table, and padding columns of the last block take 0.

#include <cstdint>
#include <vector>

#include "spatial/builder.h"
#include "spatial/lower/flat_build.h"

namespace tw::spatial::lower {

class ColumnBlocks {
 public:
  // One flat row of n columns, or rows of them lying dense: then an item makes a block of columns of a tile row.
  ColumnBlocks(const Target& target, uint64_t n, uint64_t rows = 1)
      : n_(n),
        tiles_(target.tiles(n)),
        block_(target.block_of(tiles_)),
        width_(target.tile.cols),
        tile_rows_((rows + target.tile.rows - 1) / target.tile.rows) {}

  [[nodiscard]] uint64_t block_tiles() const { return block_; }
  // Block i of tile row r is item (r, i).
  [[nodiscard]] std::vector<WorkItem> items() const;

  // The table, the stages that move indices and bounds, and the stage itself, over block_tiles() tiles of `out`.
  // Refused when the target has no integer for a moved index.
  Result<void> write(Builder& builder, PointwiseStage stage, BufferId out, std::string_view subject) const;

 private:
  struct Moved;  // the stage while it is rewritten

  [[nodiscard]] uint64_t span() const { return tiles_ * width_; }
  [[nodiscard]] uint64_t count() const { return tiles_ / block_; }
  [[nodiscard]] bool follows_column(const PointwiseStage& stage) const;
  [[nodiscard]] std::vector<int64_t> bounds_of(const PointwiseStage& stage) const;
  [[nodiscard]] uint64_t index_space(const PointwiseStage& stage, const std::vector<int64_t>& bounds) const;
  [[nodiscard]] BufferId load_table(Builder& builder, const std::string& stage, const std::vector<int64_t>& bounds,
                                    Precision dtype) const;
  uint32_t add_page(Moved& moved, size_t own, BufferId page) const;
  ElemAccess move_index(Builder& builder, const PointwiseStage& stage, size_t operand, Moved& moved) const;
  ElemAccess move_map(Builder& builder, const PointwiseStage& stage, size_t operand, Moved& moved) const;
  uint32_t move_bound(Builder& builder, const PointwiseStage& stage, uint32_t operand, Moved& moved) const;
  Expr move_body(Builder& builder, const PointwiseStage& stage, Moved& moved) const;

  uint64_t n_;
  uint64_t tiles_;
  uint64_t block_;
  uint64_t width_;
  uint64_t tile_rows_;
};

}  // namespace tw::spatial::lower
