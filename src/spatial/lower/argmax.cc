#include "spatial/lower/argmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/round.h"
#include "spatial/builder.h"
#include "spatial/lower/index.h"
#include "spatial/lower/lower.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// How the rows of x, and the places of their maxima, lie.
struct Rows {
  uint64_t count = 1;    // m
  uint64_t cols = 1;     // n
  uint64_t in_tile = 1;  // rows of a tile that are rows of x
  uint64_t tile_rows = 1;
  uint64_t row_tiles = 1;
  bool flat_result = true;

  explicit Rows(const OpView& op)
      : count(op[0].rows),
        cols(op[0].cols),
        in_tile(std::min<uint64_t>(count, op.target.tile.rows)),
        tile_rows((count + op.target.tile.rows - 1) / op.target.tile.rows),
        row_tiles(op.target.tiles(cols)),
        flat_result(tile_rows == 1 || op.target.tile.square()) {}

  [[nodiscard]] std::string name() const {
    return count == 1 ? fmt::format("argmax_{}", cols) : fmt::format("argmax_{}x{}", count, cols);
  }
  // A grid of items, `per_row` a tile row, of one tile of a dense result.
  [[nodiscard]] std::vector<WorkItem> items(uint64_t per_row) const { return grid_items(tile_rows, per_row); }
};

struct ArgmaxPrecisions {
  Precision x = Precision::F32;
  Precision accumulator = Precision::F32;
  Precision position = Precision::I32;
};

// Positions are made at I(space).
Result<ArgmaxPrecisions> argmax_precisions(const OpView& op, uint64_t space) {
  ArgmaxPrecisions all;
  TW_TRY(all.x, table_precision(op, op[0]));
  TW_TRY(all.accumulator, accumulator_for(op.target, all.x, op.subject()));
  TW_TRY(all.position, index_precision(op.target, space, op.subject()));
  return all;
}

// What no element is less than.
double least(Precision precision) {
  if (is_integer(precision)) return -static_cast<double>(int_max(precision)) - 1.0;
  return -std::numeric_limits<double>::infinity();
}

// Closes a section with the positions of a tile row, in the first column of `at`, counted from 1.
Result<Program> finish_positions(Builder&& b, const OpView& op, const Rows& r, BufferId at, std::string name) {
  const uint64_t page_tiles = r.flat_result ? op.target.tiles(r.in_tile) : 1;
  const TensorId result = r.flat_result
                              ? b.tensor(op.result.name, TensorRole::Output, 1, r.count, op.result.stored(b.dtype(at)))
                              : b.tensor(op.result.name, TensorRole::Output, r.count, 1, op.result.stored(b.dtype(at)));
  const BufferId out = b.buffer("out", page_tiles, op.result.stored(b.dtype(at)));
  GenericStage stage = b.compute("one_based", r.flat_result ? flat(r.in_tile) : std::vector{rows(r.in_tile), cols(1)});
  const ElemAccess down = r.flat_result ? map3(0, 0, b.width(at)) : row_of(b.width(at));
  const Expr position = stage.read(at, down);
  stage.write(out, position + 1.0);
  b.store("store_" + op.result.name, out, result, {.steps = {item_y(1)}});
  std::vector<WorkItem> items;
  for (uint64_t y = 0; y < r.tile_rows; ++y)
    items.push_back({y, 0, r.flat_result ? TileRect{0, y, 1, page_tiles} : TileRect{y, 0, 1, 1}});
  return within(std::move(b).finish({.name = std::move(name), .items = std::move(items), .claim = exact()}), op.target);
}

// ---- blocks ----

// The blocks of a row and what the merges make of them.
struct Blocks {
  uint64_t tiles = 1;  // of a block
  uint64_t count = 1;
  uint64_t last_tile = 0;  // where the last block starts: it may overlap the one before it
  uint64_t width = 1;      // elements of a block
  std::vector<uint64_t> fans;
  uint64_t slots = 1;  // winners, those of no block included

  Blocks(const Target& target, const Rows& r)
      : tiles(std::min<uint64_t>(target.accumulator_tiles, r.row_tiles)),
        count(ceil_div(r.row_tiles, tiles)),
        last_tile(r.row_tiles - tiles),
        width(tiles * target.tile.cols),
        fans(merge_fans(count, std::max<uint64_t>(2, tiles))) {
    if (fans.empty()) fans.push_back(1);
    for (const uint64_t fan : fans) slots *= fan;
  }

  // Of a slot: its first element; past its last live place in the scan, the seed being place 0; whether it starts from
  // item 1 of the row. A slot of no block is masked whole.
  struct Slot {
    uint64_t start = 0;
    uint64_t live = 1;
    bool first = false;
  };
  [[nodiscard]] Slot slot(const Rows& r, const Target& target, uint64_t s) const {
    if (s >= count) return {};
    const uint64_t start = std::min(s * tiles, last_tile) * target.tile.cols;
    return {start, std::min(r.cols - start, width) + 1, s == 0};
  }
};

constexpr uint64_t kFields = 3;  // start, live, first

// One value a row, in every column of its tile: a fold of one column.
std::vector<Iter> across_rows(const Rows& r) { return {rows(r.in_tile), reduce_cols(1, Pool::Max)}; }

// The winners of a level: a tile a slot, its row's winner in every column.
struct Winners {
  TensorId value{};
  TensorId position{};

  static Winners declare(Builder& b, const OpView& op, const Rows& r, const ArgmaxPrecisions& dtypes, TensorRole role,
                         size_t level, uint64_t slots) {
    const uint64_t cols = slots * op.target.tile.cols;
    const std::string name = op.result.name + "__argmax";
    return {b.tensor(fmt::format("{}_value{}", name, level), role, r.count, cols, dtypes.x),
            b.tensor(fmt::format("{}_position{}", name, level), role, r.count, cols, dtypes.position)};
  }
};

class BlockScan {
 public:
  BlockScan(const OpView& op, const Rows& r, const Blocks& blocks, const ArgmaxPrecisions& dtypes)
      : op_(op), rows_(r), blocks_(blocks), dtypes_(dtypes), builder_(op.target, dtypes.accumulator) {}

  Result<Program> build() {
    const Winners out = Winners::declare(builder_, op_, rows_, dtypes_, TensorRole::Output, 0, blocks_.slots);
    load_fields();
    load_block();
    const BufferId at = scan();
    winner_value(at, out);
    winner_position(out);
    return within(
        std::move(builder_).finish({.name = fmt::format("argmax_blocks{}_b{}", rows_.name().substr(6), blocks_.tiles),
                                    .items = rows_.items(blocks_.slots),
                                    .claim = exact()}),
        op_.target);
  }

 private:
  [[nodiscard]] std::vector<Iter> a_row() const { return {rows(rows_.in_tile), cols(1)}; }
  [[nodiscard]] Block own_tile() const { return {.steps = {item_y(blocks_.slots), item_x(1)}}; }
  BufferId scratch(const std::string& name, Precision dtype) { return builder_.scratch(name, 1, dtype, 1); }

  void load_fields() {
    std::vector<int64_t> fields;
    for (uint64_t s = 0; s < blocks_.slots; ++s) {
      const Blocks::Slot slot = blocks_.slot(rows_, op_.target, s);
      for (const uint64_t field : {slot.start, slot.live, uint64_t{slot.first}}) fields.push_back(to_signed(field));
    }
    const TensorId table = builder_.scalar_table(op_.result.name + "__argmax_blocks", dtypes_.position, fields);
    const auto load = [&](const std::string& name, uint64_t field) {
      const BufferId page = builder_.buffer("in_" + name, 1, dtypes_.position, 1);
      builder_.load("load_" + name, table, {.base = field, .steps = {item_x(kFields)}}, page);
      return page;
    };
    address_ = load("address", 0);
    start_ = load("start", 0);
    live_ = load("live", 1);
    first_ = load("first", 2);
  }

  void load_block() {
    const TensorId x = declare_dense(builder_, op_[0], dtypes_.x);
    x_ = builder_.buffer("in_x", blocks_.tiles, dtypes_.x);
    const uint64_t width = op_.target.tile.cols;
    builder_.load("load_x", x,
                  {.steps = {item_y(rows_.row_tiles)},
                   .indirect = IndirectTile{address_, 1, width, 0, to_signed(blocks_.last_tile * width)}},
                  x_);
  }

  // The place of the maximum among the seed and the block: 0 when the seed is not beaten.
  BufferId scan() {
    seed_ = scratch("block_seed", dtypes_.x);
    GenericStage seed = builder_.compute("block_seed", a_row());
    const uint32_t is_first = seed.operand(first_, fixed(0));
    const Expr item = seed.read(x_, row_of(builder_.width(x_)));
    seed.write(seed_, select(less_than_operand(Axis::Col, is_first), item, least(dtypes_.x)));

    const BufferId at = scratch("block_argmax", dtypes_.position);
    GenericStage stage =
        builder_.compute("block_argmax", {rows(rows_.in_tile), reduce_cols(blocks_.width + 1, Pool::ArgMax)});
    const uint32_t live = stage.operand(live_, fixed(0));
    const Expr from = stage.read(seed_, row_of(builder_.width(seed_)));
    const Expr value = stage.read(x_, ident(builder_.width(x_)).shifted(-1));
    stage.write(at,
                select(less(Axis::Col, 1), from, select(less_than_operand(Axis::Col, live), value, least(dtypes_.x))));
    return at;
  }

  // Read again by its place, so that a NaN in front of the row is passed on.
  void winner_value(BufferId at, const Winners& to) {
    picked_ = scratch("block_pick", dtypes_.position);
    GenericStage pick = builder_.compute("block_pick", a_row());
    const Expr place = pick.read(at, row_of(builder_.width(at)));
    pick.write(picked_, max(place - 1.0, 0.0));

    const BufferId out = builder_.buffer("out_value", 1, dtypes_.x);
    GenericStage stage = builder_.compute("block_value", across_rows(rows_));
    const uint32_t beaten = stage.operand(at, row_of(builder_.width(at)));
    const uint32_t by = stage.operand(picked_, row_of(builder_.width(picked_)));
    const Expr value = stage.read(x_, row_of(builder_.width(x_)).plus(by, 1, blocks_.width));
    const Expr seed = stage.read(seed_, row_of(builder_.width(seed_)));
    stage.write(out, select(less_than_operand(Axis::Col, beaten), value, seed));
    builder_.store("store_value", out, to.value, own_tile());
  }

  void winner_position(const Winners& to) {
    const BufferId out = builder_.buffer("out_position", 1, dtypes_.position);
    GenericStage stage = builder_.compute("block_position", across_rows(rows_));
    const Expr place = stage.read(picked_, row_of(builder_.width(picked_)));
    const Expr start = stage.read(start_, fixed(0));
    stage.write(out, place + start);
    builder_.store("store_position", out, to.position, own_tile());
  }

  const OpView& op_;
  const Rows& rows_;
  const Blocks& blocks_;
  const ArgmaxPrecisions& dtypes_;
  Builder builder_;
  BufferId address_{}, start_{}, live_{}, first_{};  // of the slot: where its block is loaded from, and its fields
  BufferId x_{}, seed_{}, picked_{};
};

// Level `level` of the merges: `slots` winners of a row to slots / fan, or the result.
Result<Program> merge(const OpView& op, const Rows& r, const ArgmaxPrecisions& dtypes, size_t level, uint64_t slots,
                      uint64_t fan) {
  Builder b(op.target, dtypes.accumulator);
  const bool root = slots == fan;
  std::optional<Winners> to;
  if (!root) to = Winners::declare(b, op, r, dtypes, TensorRole::Output, level + 1, slots / fan);
  const Winners from = Winners::declare(b, op, r, dtypes, TensorRole::Input, level, slots);
  const BufferId values = b.buffer("in_value", fan, dtypes.x),
                 positions = b.buffer("in_position", fan, dtypes.position);
  const std::vector<Step> steps{item_y(slots), item_x(fan)};
  b.load("load_value", from.value, {.steps = steps}, values);
  b.load("load_position", from.position, {.steps = steps}, positions);

  const int64_t width = b.width(values), tile = op.target.tile.cols;
  const BufferId at = b.scratch("merge_argmax", 1, dtypes.position, 1);
  GenericStage scan = b.compute("merge_argmax", {rows(r.in_tile), reduce_cols(fan, Pool::ArgMax)});
  const Expr candidate = scan.read(values, map3(0, width, tile));
  scan.write(at, candidate);
  const auto pick = [&](const std::string& name, BufferId page, BufferId out) {
    GenericStage stage = b.compute(name, across_rows(r));
    const uint32_t winner = stage.operand(at, row_of(b.width(at)));
    const Expr value = stage.read(page, row_of(width).plus(winner, tile, fan));
    stage.write(out, value);
    return out;
  };
  const std::string name = fmt::format("argmax_merge{}_f{}", level + 1, fan);
  if (root) {
    const BufferId position = pick("merge_position", positions, b.scratch("position", 1, dtypes.position, 1));
    return finish_positions(std::move(b), op, r, position, name);
  }
  const Block own{.steps = {item_y(slots / fan), item_x(1)}};
  b.store("store_value", pick("merge_value", values, b.buffer("out_value", 1, dtypes.x)), to->value, own);
  b.store("store_position", pick("merge_position", positions, b.buffer("out_position", 1, dtypes.position)),
          to->position, own);
  return within(std::move(b).finish({.name = name, .items = r.items(slots / fan), .claim = exact()}), op.target);
}

}  // namespace

std::vector<uint64_t> merge_fans(uint64_t blocks, uint64_t most) {
  const auto reaches = [](uint64_t fan, size_t levels, uint64_t want) {
    uint64_t product = 1;
    for (size_t i = 0; i < levels && product < want; ++i) product *= fan;
    return product >= want;
  };
  if (blocks <= 1) return {};
  size_t levels = 1;
  while (!reaches(most, levels, blocks)) ++levels;
  std::vector<uint64_t> fans;
  for (uint64_t rest = blocks; levels > 0; --levels) {
    uint64_t fan = 2;
    while (fan < most && !reaches(fan, levels, rest)) ++fan;
    fans.push_back(fan);
    rest = ceil_div(rest, fan);
  }
  return fans;
}

Result<Program> argmax_rows(const OpView& op) {
  const Rows r(op);
  TW_TRY(const ArgmaxPrecisions dtypes, argmax_precisions(op, r.cols));
  Builder b(op.target, dtypes.accumulator);
  const TensorId from = declare_dense(b, op[0], dtypes.x);
  const BufferId x = b.buffer("in_x", r.row_tiles, dtypes.x);
  const BufferId at = b.scratch("argmax", 1, dtypes.position, 1);
  b.load("load_x", from, {.steps = {item_y(r.row_tiles)}}, x);
  GenericStage scan = b.compute("argmax", {rows(r.in_tile), reduce_cols(r.cols, Pool::ArgMax)});
  const Expr value = scan.read(x, ident(b.width(x)));
  scan.write(at, value);
  return finish_positions(std::move(b), op, r, at, r.name());
}

Result<std::vector<Program>> argmax_blocked(const OpView& op) {
  const Rows r(op);
  const Blocks blocks(op.target, r);
  TW_TRY(const ArgmaxPrecisions dtypes, argmax_precisions(op, r.cols + blocks.width + 1));
  std::vector<Program> sections;
  TW_TRY(Program scan, BlockScan(op, r, blocks, dtypes).build());
  sections.push_back(std::move(scan));
  uint64_t slots = blocks.slots;
  for (size_t level = 0; level < blocks.fans.size(); ++level) {
    TW_TRY(Program section, merge(op, r, dtypes, level, slots, blocks.fans[level]));
    sections.push_back(std::move(section));
    slots /= blocks.fans[level];
  }
  return sections;
}

Result<Lowered> lower(const graph::ArgMax&, const OpView& view) {
  const uint64_t tiles = view.target.tiles(view[0].cols);
  if (view.target.wide(view[0].cols)) {
    TW_TRY(std::vector<Program> sections, argmax_blocked(view));
    return Lowered{std::move(sections), "blocked", over_a_page(view.target, tiles)};
  }
  TW_TRY(Program section, argmax_rows(view));
  return Lowered{{std::move(section)}, "rows", within_a_page(view.target, tiles)};
}

}  // namespace tw::spatial::lower
