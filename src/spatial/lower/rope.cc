#include "spatial/lower/rope.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "base/check.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/index.h"
#include "spatial/lower/lower.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

struct RopeShape {
  uint64_t rows = 1;
  uint64_t heads = 1;  // of a row
  uint64_t width = 1;
  uint64_t half = 1;
  uint64_t cache = 1;  // rows of the tables

  RopeShape(const graph::Rope& spec, const OpView& op)
      : rows(op[0].rows),
        heads(op[0].cols / (spec.width == 0 ? op[0].cols : spec.width)),
        width(spec.width == 0 ? op[0].cols : spec.width),
        half(spec.half),
        cache(op[1].rows) {}

  [[nodiscard]] std::string name() const {
    std::string text = fmt::format("rope_{}x{}_half{}", rows * heads, width, half);
    if (rows > 1) text += fmt::format("_rows{}", rows);
    return text;
  }
};

// ---- the rows of the tables ----

// The pages of both tables: where in them the item's first row starts, as a constant and as data.
class RopeTables {
 public:
  // Either all rows of x, or, item by item, the row that y counts.
  static Result<RopeTables> load(Builder& builder, const OpView& op, const RopeShape& shape, const RowIndex& row,
                                 bool by_item) {
    RopeTables tables(builder, op, shape, row, by_item);
    TW_TRY(const Precision element, real_element(op.target, op.subject()));
    tables.element_ = element;
    if (op.target.whole(shape.half)) {
      TW_TRY_VOID(tables.whole_rows());
    } else if (!row.named && !tables.steps()) {
      tables.fixed_rows();
    } else {
      TW_TRY_VOID(tables.windows());
    }
    return tables;
  }

  BufferId cos{};
  BufferId sin{};
  int64_t first = 0;               // element of the first row, less what `offset` says
  std::optional<BufferId> offset;  // below `offsets`
  uint64_t offsets = 1;

 private:
  RopeTables(Builder& builder, const OpView& op, const RopeShape& shape, const RowIndex& row, bool by_item)
      : builder_(builder), op_(op), shape_(shape), row_(row), by_item_(by_item) {}

  [[nodiscard]] bool steps() const { return by_item_ && shape_.rows > 1; }
  [[nodiscard]] uint64_t length() const { return (by_item_ ? 1 : shape_.rows) * shape_.half; }
  [[nodiscard]] uint64_t size() const { return shape_.cache * shape_.half; }

  // block(what): the address of the table `what`.
  template <class AddressOf>
  void load_both(uint64_t tiles, AddressOf&& address) {
    const auto load_one = [&](size_t operand, const std::string& what) {
      const OpTensor& table = op_[operand];
      const TensorId tensor = declare_flat(builder_, table, table.stored(element_));
      const BufferId page = builder_.buffer("in_" + what, tiles, builder_.program().at(tensor).dtype, 1);
      Block block = address(what);
      builder_.load("load_" + what, tensor, std::move(block), page);
      return page;
    };
    cos = load_one(1, "rc");
    sin = load_one(2, "rs");
  }

  // Rows that are whole tiles have an address.
  Result<void> whole_rows() {
    const uint64_t row_tiles = shape_.half / op_.target.tile.cols;
    Block block{.base = row_.named ? 0 : row_.first() * row_tiles};
    if (steps()) block.steps = {item_y(row_tiles)};
    std::optional<NamedRow> named;
    if (row_.named) {
      TW_TRY(named, named_row(builder_, op_, row_, shape_.cache));
    }
    load_both(length() / op_.target.tile.cols, [&](const std::string& what) {
      if (named) block.indirect = named->address("row_" + what, row_tiles);
      return block;
    });
    return {};
  }

  // The tiles that hold the rows of a literal position.
  void fixed_rows() {
    const uint64_t width = op_.target.tile.cols, element = row_.first() * shape_.half;
    first = to_signed(element % width);
    load_both(op_.target.tiles(element % width + length()),
              [&](const std::string&) { return Block{.base = element / width}; });
  }

  // Rows that start anywhere in a tile, at an element that is data.
  Result<void> windows() {
    TW_TRY(const BufferId element, first_element());
    const RowWindow window = RowWindow::of(op_.target, size(), length());
    load_both(window.tiles, [&](const std::string& what) {
      return Block{.indirect = window.start(builder_, "window_" + what, element)};
    });
    offset = window.offset(builder_, "rope_offset", element);
    offsets = window.offsets;
    return {};
  }

  // (P - 1) * half, and y * half by item.
  Result<BufferId> first_element() {
    TW_TRY(Precision dtype, index_precision(op_.target, size(), op_.subject()));
    if (row_.named) {
      TW_TRY(dtype, index_dtype(op_, *row_.named, size()));
    }
    std::optional<BufferId> of_item;
    if (steps()) {
      std::vector<int64_t> elements;
      for (uint64_t y = 0; y < shape_.rows; ++y)
        elements.push_back(to_signed(((row_.named ? 0 : row_.first()) + y) * shape_.half));
      const TensorId table = builder_.scalar_table(op_.result.name + "__rope_rows", dtype, elements);
      of_item = builder_.buffer("in_row_start", 1, dtype, 1);
      builder_.load("load_row_start", table, {.steps = {item_y(1)}}, *of_item);
    }
    if (!row_.named) return *of_item;
    TW_TRY(NamedRow named, named_row(builder_, op_, row_, size()));
    return named.scaled("first_element", shape_.half, of_item);
  }

  Builder& builder_;
  const OpView& op_;
  const RopeShape& shape_;
  const RowIndex& row_;
  bool by_item_;
  Precision element_ = Precision::F32;
};

// ---- the turn ----

struct Head {
  uint64_t column = 0;  // its first in the page of x
  uint64_t row = 0;     // of the tables, in their pages
};

uint32_t index_of(PointwiseStage& stage, BufferId page, uint64_t extent) { return stage.index(page, fixed(0), extent); }
uint32_t index_of(GenericStage& stage, BufferId page, uint64_t) { return stage.operand(page, fixed(0)); }

// Three bands of columns a head, two when there is nothing that passes.
template <class Stage>
Expr turned(Stage& stage, BufferId x, const RopeTables& tables, const RopeShape& shape, std::span<const Head> heads) {
  const auto half = to_signed(shape.half);
  std::optional<uint32_t> offset;
  if (tables.offset) offset = index_of(stage, *tables.offset, tables.offsets);
  const Expr here = stage.read(x, at(0)), ahead = stage.read(x, at(half)), behind = stage.read(x, at(-half));
  std::vector<Band> bands;
  for (const Head& head : heads) {
    const auto column = to_signed(head.column);
    const auto angle = [&](BufferId page, int64_t from) {
      ElemAccess map = at(tables.first + to_signed(head.row) * half - from);
      if (offset) map = map.plus(*offset, 1, tables.offsets);
      return stage.read(page, map);
    };
    const Expr c = angle(tables.cos, column), s = angle(tables.sin, column);
    bands.push_back({column + half, here * c - ahead * s});
    const Expr c2 = angle(tables.cos, column + half), s2 = angle(tables.sin, column + half);
    bands.push_back({column + 2 * half, behind * s2 + here * c2});
    if (2 * shape.half < shape.width) bands.push_back({column + to_signed(shape.width), here});
  }
  return banded(bands);
}

}  // namespace

uint64_t rope_heads_an_item(const graph::Rope& spec, const OpView& op) {
  const RopeShape shape(spec, op);
  const uint64_t heads = op.target.tile.cols / std::gcd(shape.width, uint64_t{op.target.tile.cols});
  return shape.heads % heads == 0 && !op.target.wide(heads * shape.width) ? heads : 0;
}

Result<Program> rope_flat(const graph::Rope& spec, const OpView& op, uint64_t position) {
  const RopeShape shape(spec, op);
  TW_TRY(const RowIndex row, row_index(op, 3, position, shape.cache + 1 - shape.rows));
  TW_TRY(const Precision precision, element_of(op, op[0]));
  TW_TRY(FlatBuild build, FlatBuild::open(op, precision));
  const BufferId x = build.input(op[0]);
  TW_TRY(const RopeTables tables, RopeTables::load(build.builder(), op, shape, row, false));
  std::vector<Head> heads;
  for (uint64_t h = 0; h < shape.rows * shape.heads; ++h) heads.push_back({h * shape.width, h / shape.heads});
  PointwiseStage stage("rope");
  stage.body(turned(stage, x, tables, shape, heads));
  return within(std::move(build).pointwise(std::move(stage), op[0].size(), shape.name(),
                                           approx(fmt::format("rotary embedding in {}", name(precision)))),
                op.target);
}

Result<Program> rope_heads(const graph::Rope& spec, const OpView& op, uint64_t position) {
  const RopeShape shape(spec, op);
  const uint64_t an_item = rope_heads_an_item(spec, op), n = op[0].size();
  TW_CHECK(an_item > 0, "{} units of {} are no runs of whole tiles", shape.heads, shape.width);
  const uint64_t row_tiles = op.target.tiles(op[0].cols), block = op.target.tiles(an_item * shape.width);
  TW_TRY(const RowIndex row, row_index(op, 3, position, shape.cache + 1 - shape.rows));
  TW_TRY(const Precision precision, element_of(op, op[0]));
  TW_TRY(const Precision accumulator, accumulator_for(op.target, precision, op.subject()));
  const Precision result = op.result.stored(precision);
  Builder b(op.target, accumulator);
  const TensorId from = declare_flat(b, op[0], precision),
                 to = b.tensor(op.result.name, TensorRole::Output, 1, n, result);
  const BufferId x = b.buffer("in_x", block, precision), out = b.buffer("out", block, result);
  const std::vector<Step> steps{item_y(row_tiles), item_x(block)};
  b.load("load_x", from, {.steps = steps}, x);
  TW_TRY(const RopeTables tables, RopeTables::load(b, op, shape, row, true));
  std::vector<Head> heads;
  for (uint64_t h = 0; h < an_item; ++h) heads.push_back({h * shape.width, 0});
  GenericStage stage = b.compute("rope", flat(an_item * shape.width));
  Expr body = turned(stage, x, tables, shape, heads);
  stage.write(out, std::move(body));
  b.store("store_" + op.result.name, out, to, {.steps = steps});
  return within(std::move(b).finish({.name = shape.name(),
                                     .items = grouped_items(shape.rows, row_tiles, block),
                                     .claim = approx(fmt::format("rotary embedding in {}", name(precision)))}),
                op.target);
}

Result<Lowered> lower(const graph::Rope& op, const OpView& view) {
  const uint64_t tiles = view.target.tiles(view[0].size());
  const uint64_t heads = rope_heads_an_item(op, view);
  if (!view.target.wide(view[0].size())) {
    TW_TRY(Program section, rope_flat(op, view));
    return Lowered{{std::move(section)}, "flat", within_a_page(view.target, tiles)};
  }
  if (heads > 0) {
    TW_TRY(Program section, rope_heads(op, view));
    return Lowered{
        {std::move(section)},
        "per head",
        fmt::format("{}, {} unit{} whole tiles", over_a_page(view.target, tiles), heads, heads == 1 ? " is" : "s are")};
  }
  TW_TRY(Program section, rope_flat(op, view));
  return Lowered{{std::move(section)},
                 "flat",
                 fmt::format("{}, and no units that fit one are whole tiles", over_a_page(view.target, tiles))};
}

}  // namespace tw::spatial::lower
