#include <fmt/format.h>

#include <algorithm>

#include "base/round.h"
#include "spatial/lower/index.h"
#include "spatial/lower/set_rows.h"
#include "spatial/lower/set_rows_parts.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

double number(uint64_t value) { return static_cast<double>(value); }

// The block of `count` rows from row r of the table on (0-based) starts in tile row K = floor(r / tr), o = r - tr K
// rows down. It touches at most m tile rows; those that are rewritten are m from S = min(K, table_tiles - m) on, so
// that they lie in the table and hold the block wherever it starts. Item (i, j) rewrites column block j of tile row S +
// i.
//
// Row p of that tile is row s = p - o + tr (i - d), d = K - S, of the block: in tile row i - d of the source, p - o
// rows down, when p >= o, else in the one before, p - o + tr rows down. Where one of the two is none of the source's,
// the nearest is loaded in its place and none of its rows is a member.
//
// That items write different tiles follows from their coordinates, whatever the index is.
class BlockWrite {
 public:
  BlockWrite(const OpView& op, const SetRowsParts& parts)
      : op_(op),
        parts_(parts),
        builder_(op.target, parts.accumulator),
        count_(op[1].rows),
        tile_rows_(op.target.tile.rows),
        table_tiles_(tiles_of(op[0].rows)),
        source_tiles_(tiles_of(count_)),
        most_inside_(parts.row.named ? std::min(tile_rows_, parts.row.admitted) - 1 : parts.row.first() % tile_rows_),
        rewritten_(std::min(tiles_of(most_inside_ + count_), table_tiles_)),
        row_tiles_(op.target.tiles(op[0].cols)),
        block_(op.target.block_of(row_tiles_)) {}

  Result<Program> build() {
    TW_TRY_VOID(load_row());
    load_item();
    const TensorId source = declare_dense(builder_, op_[1], parts_.source);
    const TensorId table = builder_.tensor(op_[0].name, TensorRole::State, op_[0].rows, op_[0].cols, parts_.table,
                                           init_of(op_[0].fill, op_[0].size()));
    const BufferId out = builder_.buffer("tile_row", block_, parts_.table);
    write(source, table, out);
    builder_.store("scatter_" + op_[0].name, out, table, table_block("row_scatter"));
    Section section{.name = parts_.name + "_dense", .items = items(), .claim = parts_.claim};
    section.plan = tile_row_plan(row_tiles_, block_, rewritten_);
    return within(std::move(builder_).finish(std::move(section)), op_.target);
  }

 private:
  [[nodiscard]] uint64_t tiles_of(uint64_t rows) const { return ceil_div(rows, tile_rows_); }
  [[nodiscard]] double last_start() const { return number(table_tiles_ - rewritten_); }

  // A literal is a param of one element, so that both ways are one.
  Result<void> load_row() {
    RowIndex row = parts_.row;
    OpTensor literal;
    if (!row.named) {
      literal.fill = IntegerInit{to_signed(row.literal)};
      literal.constant = literal.integer = true;
      TW_TRY(literal.dtype, index_dtype(op_, literal, op_[0].rows));
      literal.name = fmt::format("{}__first_{}_{}", op_.result.name, row.literal, name(*literal.dtype));
      row.named = &literal;
    }
    TW_TRY(NamedRow named, named_row(builder_, op_, row, op_[0].rows));
    row_ = named.scaled("first_row");
    return {};
  }

  // The item's number among the tile rows.
  void load_item() {
    const Precision dtype = builder_.dtype(row_);
    std::vector<int64_t> numbers;
    for (uint64_t i = 0; i < rewritten_; ++i) numbers.push_back(to_signed(i));
    const TensorId table = builder_.scalar_table(
        fmt::format("{}__tile_rows{}_{}", op_.result.name, rewritten_, name(dtype)), dtype, numbers);
    item_ = builder_.buffer("in_item", 1, dtype, 1);
    builder_.load("load_item", table, {.steps = {item_y(1)}}, item_);
  }

  [[nodiscard]] Expr tile_row(const Expr& row) const { return floor_quotient(row, tile_rows_); }
  [[nodiscard]] Expr start(const Expr& row) const { return min(tile_row(row), last_start()); }

  // A page of one element, body(r, i).
  template <class Body>
  BufferId element(const std::string& name, bool for_movement, Body&& body) {
    const Precision dtype = builder_.dtype(row_);
    const BufferId page = for_movement ? builder_.buffer(name, 1, dtype, 1) : builder_.scratch(name, 1, dtype, 1);
    GenericStage stage = builder_.compute(name, flat(1));
    const Expr row = stage.read(row_, fixed(0));
    stage.write(page, body(stage, row));
    return page;
  }
  Expr item(GenericStage& stage) const { return stage.read(item_, fixed(0)); }

  // The item's tiles of the table, for one movement.
  Block table_block(const std::string& name) {
    const BufferId page = element(name, true, [&](GenericStage&, const Expr& row) { return start(row); });
    return {.steps = {item_y(row_tiles_), item_x(block_)},
            .indirect = IndirectTile{page, row_tiles_, 1, 0, to_signed(table_tiles_ - rewritten_)}};
  }

  // The source's tiles `back` tile rows before i - d.
  BufferId source_page(const std::string& name, TensorId source, uint64_t back) {
    const BufferId at = element("row_" + name, true, [&](GenericStage& stage, const Expr& row) {
      const Expr number_of = item(stage) + start(row) - tile_row(row) - number(back);
      return max(min(number_of, number(source_tiles_ - 1)), 0.0);
    });
    const BufferId page = builder_.buffer("in_" + name, block_, parts_.source);
    builder_.load(
        "load_" + name, source,
        {.steps = {item_x(block_)}, .indirect = IndirectTile{at, row_tiles_, 1, 0, to_signed(source_tiles_ - 1)}},
        page);
    return page;
  }

  void write(TensorId source, TensorId table, BufferId out) {
    const double rows_per_tile = number(tile_rows_);
    const BufferId inside = element("in_tile_row_index", false, [&](GenericStage&, const Expr& row) {
      return row - tile_row(row) * rows_per_tile;
    });
    const BufferId low = element("member_low", false, [&](GenericStage& stage, const Expr& row) {
      return row - (start(row) + item(stage)) * rows_per_tile;
    });
    const BufferId high = element("member_high", false, [&](GenericStage& stage, const Expr& row) {
      return row - (start(row) + item(stage)) * rows_per_tile + number(count_);
    });
    const BufferId here = source_page("source", source, 0);
    const bool two = rewritten_ > 1 && most_inside_ > 0;  // the block can go on in the next tile row
    const BufferId before = two ? source_page("source_before", source, 1) : here;
    const BufferId old = builder_.buffer("in_tile_row", block_, parts_.table);
    builder_.load("gather_" + op_[0].name, table, table_block("row_gather"), old);

    const int64_t width = builder_.width(out), down = to_signed(most_inside_);
    GenericStage stage = builder_.compute("write_rows", {rows(tile_rows_), cols(static_cast<uint64_t>(width))});
    const uint32_t o = stage.operand(inside, fixed(0));
    Expr member = stage.read(here, ident(width).plus(o, -width, tile_rows_));
    if (down > 0) {
      Expr above = 0.0;
      // Constant bounds say what the values of o imply, for whoever cannot see them.
      if (two) {
        const ElemAccess map = ident(width).shifted(to_signed(tile_rows_) * width).plus(o, -width, tile_rows_);
        above = select(less(Axis::Row, down), stage.read(before, map), 0.0);
      }
      const Pred over = parts_.row.named ? less_than_operand(Axis::Row, o) : less(Axis::Row, down);
      member = select(over, std::move(above), member);
    }
    const Expr stays = stage.read(old, ident(width));
    const Pred from = at_least_operand(Axis::Row, stage.operand(low, fixed(0)));
    const Pred to = less_than_operand(Axis::Row, stage.operand(high, fixed(0)));
    stage.write(out, select(from, select(to, member, stays), stays));
  }

  [[nodiscard]] std::vector<WorkItem> items() const {
    std::vector<WorkItem> items;
    for (uint64_t i = 0; i < rewritten_; ++i)
      for (uint64_t j = 0; j < row_tiles_ / block_; ++j) items.push_back({i, j, {i, j * block_, 1, block_}});
    return items;
  }

  const OpView& op_;
  const SetRowsParts& parts_;
  Builder builder_;
  uint64_t count_;
  uint64_t tile_rows_;
  uint64_t table_tiles_;  // tile rows of the table, and of the source
  uint64_t source_tiles_;
  uint64_t most_inside_;
  uint64_t rewritten_;
  uint64_t row_tiles_;  // tiles of a tile row, and of an item's block of it
  uint64_t block_;
  BufferId row_{};   // r, checked
  BufferId item_{};  // i
};

}  // namespace

Result<Program> set_block_dense(const graph::SetRows& spec, const OpView& op) {
  TW_TRY(const SetRowsParts parts, set_rows_parts(spec, op));
  return BlockWrite(op, parts).build();
}

}  // namespace tw::spatial::lower
