#include "spatial/lower/tile_map.h"

#include <map>

#include "spatial/builder.h"

namespace tw::spatial::lower {
namespace {

// An extent of 1 is spread by being whole.
Spread effective(const TileOperand& operand, const TileMap& map) {
  const bool whole = operand.spread == Spread::Down ? map.rows == 1 : map.cols == 1;
  return whole ? Spread::None : operand.spread;
}

class TileMapBuild {
 public:
  TileMapBuild(const OpView& op, const TileMap& map, Precision precision, Precision accumulator)
      : op_(op),
        map_(map),
        precision_(precision),
        grid_(grid_of({.rows = map.rows, .cols = map.cols}, op.target.tile)),
        b_(op.target, accumulator) {}

  Result<Program> build() && {
    TW_TRY_VOID(load_ends());
    std::vector<BufferId> pages;
    for (const TileOperand& operand : map_.operands) pages.push_back(load(operand));
    const Precision stored = op_.result.stored(precision_);
    const TensorId result = b_.tensor(op_.result.name, TensorRole::Output, map_.rows, map_.cols, stored);
    const BufferId out = b_.buffer("out", 1, stored);
    compute(pages, out);
    b_.store("store_" + op_.result.name, out, result, {.steps = tile_grid_steps(grid_.rows, grid_.cols)});
    return std::move(b_).finish(
        {.name = map_.name,
         .items = grid_items(grid_.rows, grid_.cols),
         .claim = claim(is_integer(precision_) && integral(map_.body), map_.stage, precision_)});
  }

 private:
  // Where the extent ends inside a tile: of each tile row or tile column, how many of its rows or columns are inside.
  Result<void> load_end(const std::string& what, uint64_t extent, uint64_t tile, Step step,
                        std::optional<BufferId>& page) {
    if (extent % tile == 0) return {};
    TW_TRY(const Precision index, index_precision(b_.target(), tile, op_.subject()));
    std::vector<int64_t> inside(extent / tile, static_cast<int64_t>(tile));
    inside.push_back(static_cast<int64_t>(extent % tile));
    const TensorId table = b_.scalar_table(op_.result.name + "__" + what + "_inside", index, inside);
    page = b_.buffer("in_" + what + "_inside", 1, index, 1);
    b_.load("load_" + what + "_inside", table, {.steps = {step}}, *page);
    return {};
  }
  Result<void> load_ends() {
    if (!map_.inside_only) return {};
    if (map_.rows > 1) TW_TRY_VOID(load_end("rows", map_.rows, b_.target().tile.rows, item_y(1), row_end_));
    return load_end("cols", map_.cols, b_.target().tile.cols, item_x(1), col_end_);
  }

  BufferId load(const TileOperand& operand) {
    const Spread spread = effective(operand, map_);
    const auto [at, fresh] = pages_.try_emplace({operand.tensor.name, spread});
    if (!fresh) return at->second;
    const uint64_t rows = spread == Spread::Down ? 1 : map_.rows, cols = spread == Spread::Across ? 1 : map_.cols;
    const Precision stored = operand.tensor.stored(precision_);
    const TensorId tensor = b_.tensor(operand.tensor.name, operand.tensor.read_role(), rows, cols, stored,
                                      init_of(operand.tensor.fill, rows * cols));
    at->second = b_.buffer("in_" + operand.page, 1, stored);
    std::vector<Step> steps = tile_grid_steps(grid_.rows, grid_.cols);
    if (spread == Spread::Down) steps = tile_grid_steps(1, grid_.cols);
    if (spread == Spread::Across) steps = tile_grid_steps(grid_.rows, 1);
    b_.load("load_" + operand.page, tensor, {.steps = std::move(steps)}, at->second);
    return at->second;
  }

  [[nodiscard]] ElemAccess access(const TileOperand& operand) const {
    const int64_t width = b_.target().tile.cols;
    switch (effective(operand, map_)) {
      case Spread::Down: return col();
      case Spread::Across: return row_of(width);
      case Spread::None: return ident(width);
    }
    return ident(width);
  }

  void compute(const std::vector<BufferId>& pages, BufferId out) {
    const TileShape tile = b_.target().tile;
    GenericStage stage = b_.compute(map_.stage, {rows(map_.rows == 1 ? 1 : tile.rows), cols(tile.cols)});
    for (size_t i = 0; i < pages.size(); ++i) stage.operand(pages[i], access(map_.operands[i]));
    Expr body = map_.body;
    if (row_end_) body = select(less_than_operand(Axis::Row, stage.operand(*row_end_, fixed(0))), body, 0.0);
    if (col_end_) body = select(less_than_operand(Axis::Col, stage.operand(*col_end_, fixed(0))), body, 0.0);
    stage.write(out, std::move(body));
  }

  const OpView& op_;
  const TileMap& map_;
  Precision precision_;
  TileGrid grid_;
  Builder b_;
  std::map<std::pair<std::string, Spread>, BufferId> pages_;
  std::optional<BufferId> row_end_;
  std::optional<BufferId> col_end_;
};

}  // namespace

Result<Program> tile_map(TileMap map, const OpView& op) {
  TW_TRY(const Precision precision, element_of(op, map.operands[0].tensor));
  TW_TRY(const Precision accumulator, accumulator_for(op.target, precision, op.subject()));
  return TileMapBuild(op, map, precision, accumulator).build();
}

}  // namespace tw::spatial::lower
