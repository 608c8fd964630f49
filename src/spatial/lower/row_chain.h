#pragma once

// Chains over rows: values of a row, folded to one number a row, that other stages of the chain use. One engine of the
// norms and the softmax, whether the rows are cut out of a flat page or are the rows of a tile.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "spatial/builder.h"

namespace tw::spatial::lower {

// Rows in a page: element (r, c) at base + r * row + c.
struct RowView {
  BufferId page{};
  int64_t base = 0;
  int64_t row = 0;

  [[nodiscard]] ElemAccess map() const { return map3(base, row, 1); }
  // Row r, read by the column of a flat stage in which its first element is column `first`.
  [[nodiscard]] ElemAccess in_band(uint64_t r, uint64_t first) const {
    return at(base + static_cast<int64_t>(r) * row - static_cast<int64_t>(first));
  }
};

// Rows that one chain works on at a time: all there are, or each by itself when a tile has fewer.
struct RowGroup {
  uint64_t first = 0;
  uint64_t rows = 1;
  std::string suffix;  // of the names of its stages and pages
  uint32_t depth = 2;  // of its pages: one by one there are many
};
std::vector<RowGroup> row_groups(uint64_t rows, const Target& target);

// Stages over `rows` rows of `width` values. A number a row is a page of one tile, which holds it in every column of
// its row.
class RowChain {
 public:
  // `ones`: the page that scales folds of reals.
  RowChain(Builder& builder, RowGroup group, uint64_t width, BufferId ones)
      : b_(builder), group_(std::move(group)), width_(width), ones_(ones) {}

  [[nodiscard]] uint64_t rows() const { return group_.rows; }
  [[nodiscard]] uint64_t width() const { return width_; }
  [[nodiscard]] RowView view(BufferId page, int64_t base, int64_t row) const { return {page, base, row}; }

  // A scratch page of body(arg(0), ...) of the rows' values, then of their numbers.
  RowView values(const std::string& stage, const std::string& page, const std::vector<RowView>& of,
                 const std::vector<BufferId>& numbers, Expr body);
  // One number a row.
  BufferId fold(const std::string& stage, const std::string& page, RowView of, Pool pool);
  // Numbers of numbers: body(arg(0), ...) of those, then of what `others` read at (r, column 0).
  BufferId number(const std::string& stage, const std::string& page, const std::vector<BufferId>& numbers, Expr body,
                  const std::vector<std::pair<BufferId, ElemAccess>>& others = {});
  // Row r of a page of numbers, for a flat stage.
  [[nodiscard]] ElemAccess number_of(uint64_t r) const { return fixed(static_cast<int64_t>(r) * tile_width()); }

 private:
  [[nodiscard]] int64_t tile_width() const { return b_.target().tile.cols; }

  Builder& b_;
  RowGroup group_;
  uint64_t width_;
  BufferId ones_;
};

}  // namespace tw::spatial::lower
