#include "spatial/lower/gather.h"

#include <fmt/format.h>

#include "spatial/lower/flat_build.h"
#include "spatial/lower/index.h"
#include "spatial/lower/lower.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// Of what the rows are and what they become.
struct GatherPrecisions {
  Precision table = Precision::F32;
  Precision result = Precision::F32;
  Precision accumulator = Precision::F32;

  // Movement converts nothing: exact unless reals are rounded to another precision.
  [[nodiscard]] NumericsClaim claim(std::string_view what) const {
    return lower::claim(table == result || is_integer(table), what, result);
  }
};

Result<GatherPrecisions> gather_precisions(const OpView& op) {
  GatherPrecisions all;
  TW_TRY(all.table, table_precision(op, op[0]));
  all.result = op.result.stored(all.table);
  TW_TRY(all.accumulator, accumulator_for(op.target, all.table, op.subject()));
  return all;
}

std::string name_of(const OpTensor& table) { return fmt::format("row_gather_{}x{}", table.rows, table.cols); }

TensorId declare_result(Builder& b, const OpView& op, uint64_t n, Precision dtype) {
  return b.tensor(op.result.name, TensorRole::Output, 1, n, dtype);
}

// Copies a page through the datapath into the page of the result.
BufferId copied(Builder& b, BufferId page, Precision dtype) {
  const BufferId row = b.buffer("row", b.page_tiles(page), dtype);
  GenericStage copy = b.compute("copy_row", flat(static_cast<uint64_t>(b.width(page))));
  const Expr value = copy.read(page, at(0));
  copy.write(row, value);
  return row;
}

// The page around the row, and the map of its elements into the page.
struct Around {
  BufferId page{};
  ElemAccess map;
};

Around literal_window(FlatBuild& build, const OpTensor& table, uint64_t first, Precision dtype) {
  const uint64_t width = build.target().tile.cols, inside = first % width;
  const BufferId page = build.input(
      table, {.precision = dtype, .depth = 1, .first_tile = first / width, .elements = inside + table.cols});
  return {page, at(to_signed(inside))};
}

Result<Around> named_window(FlatBuild& build, PointwiseStage& stage, const OpView& op, const RowIndex& row,
                            Precision dtype) {
  Builder& b = build.builder();
  const OpTensor& table = op[0];
  const TensorId tensor = declare_flat(b, table, dtype);
  TW_TRY(NamedRow named, named_row(b, op, row, table.size()));
  const RowWindow window = RowWindow::of(op.target, table.size(), table.cols);
  const BufferId first = named.scaled("row_first", table.cols);
  const BufferId page = b.buffer("in_window", window.tiles, dtype, 1);
  b.load("load_window", tensor, {.indirect = window.start(b, "row_window", first)}, page);
  const uint32_t offset = stage.index(window.offset(b, "row_offset", first), fixed(0), window.offsets);
  return Around{page, at(0).plus(offset, 1, window.offsets)};
}

}  // namespace

// ---- one row ----

Result<Program> row_gather_flat(const graph::RowGather& spec, const OpView& op) {
  const OpTensor& table = op[0];
  TW_TRY(const RowIndex row, row_index(op, 1, spec.row, table.rows));
  TW_TRY(const GatherPrecisions dtypes, gather_precisions(op));
  TW_TRY(FlatBuild build, FlatBuild::open(op, dtypes.table));
  PointwiseStage gather("gather_row");
  Around around;
  if (row.named) {
    TW_TRY(around, named_window(build, gather, op, row, dtypes.table));
  } else {
    around = literal_window(build, table, row.first() * table.cols, dtypes.table);
  }
  gather.body(gather.read(around.page, around.map));
  return within(std::move(build).pointwise(std::move(gather), table.cols, name_of(table), dtypes.claim("row gather")),
                op.target);
}

Result<Program> row_gather_tile(const graph::RowGather& spec, const OpView& op) {
  const OpTensor& table = op[0];
  const uint64_t row_tiles = op.target.tiles(table.cols), block = op.target.block_of(row_tiles);
  TW_TRY(const RowIndex row, row_index(op, 1, spec.row, table.rows));
  TW_TRY(const GatherPrecisions dtypes, gather_precisions(op));
  Builder b(op.target, dtypes.accumulator);
  const TensorId from = declare_flat(b, table, dtypes.table);
  const TensorId out = declare_result(b, op, table.cols, dtypes.result);
  TW_TRY(Block at_row, row_block(b, op, row, row_tiles, block));
  const BufferId in_row = b.buffer("in_row", block, dtypes.table);
  b.load("gather_row", from, std::move(at_row), in_row);
  b.store("store_" + op.result.name, copied(b, in_row, dtypes.result), out, {.steps = {item_x(block)}});
  return within(
      std::move(b).finish(
          {.name = name_of(table), .items = row_items(row_tiles, block), .claim = dtypes.claim("row gather")}),
      op.target);
}

Result<Program> row_gather_dense(const graph::RowGather& spec, const OpView& op) {
  const OpTensor& table = op[0];
  const uint64_t row_tiles = op.target.tiles(table.cols), block = op.target.block_of(row_tiles);
  const uint64_t tile_rows = op.target.tile.rows;
  TW_TRY(const RowIndex row, row_index(op, 1, spec.row, table.rows));
  TW_TRY(const GatherPrecisions dtypes, gather_precisions(op));
  Builder b(op.target, dtypes.accumulator);
  const TensorId from = declare_dense(b, table, dtypes.table);
  const TensorId out = declare_result(b, op, table.cols, dtypes.result);
  const BufferId in_tile_row = b.buffer("in_tile_row", block, dtypes.table),
                 lifted = b.buffer("row", block, dtypes.result);
  const int64_t width = b.width(in_tile_row);

  Block tiles{.base = row.first() / tile_rows * row_tiles, .steps = {item_x(block)}};
  std::optional<BufferId> in_tile;
  if (row.named) {
    TW_TRY(NamedRow named, named_row(b, op, row, table.rows));
    tiles.base = 0;
    tiles.indirect = named.address("row_gather", row_tiles, tile_rows);
    in_tile = named.in_tile("in_tile_row_index");
  }
  b.load("gather_tile_row", from, std::move(tiles), in_tile_row);
  GenericStage lift = b.compute("lift_row", flat(static_cast<uint64_t>(width)));
  ElemAccess map = at(to_signed(row.first() % tile_rows) * width);
  if (in_tile) map = at(0).plus(lift.operand(*in_tile, fixed(0)), width, tile_rows);
  const Expr value = lift.read(in_tile_row, map);
  lift.write(lifted, value);
  b.store("store_" + op.result.name, lifted, out, {.steps = {item_x(block)}});
  return within(std::move(b).finish({.name = name_of(table) + "_dense",
                                     .items = row_items(row_tiles, block),
                                     .claim = dtypes.claim("row gather")}),
                op.target);
}

// ---- several rows ----

namespace {

std::string name_of(const OpView& op) {
  return fmt::format("rows_gather_{}x{}x{}", op[1].size(), op[0].rows, op[0].cols);
}

// The first element of every row that is named, each checked.
BufferId row_offsets(Builder& b, const OpView& op, BufferId indices, Precision ix) {
  const Precision dtype = wider(ix, b.dtype(indices));
  const uint64_t m = op[1].size(), tiles = op.target.tiles(m);
  const BufferId biased = b.scratch("rows_biased", tiles, dtype, 1),
                 offsets = b.scratch("rows_offset", tiles, dtype, 1);
  GenericStage minus = b.compute("rows_biased", flat(m));
  const Expr value = minus.read(indices, at(0));
  minus.write(biased, value - 1.0);
  GenericStage scale = b.compute("rows_offset", flat(m));
  const Expr row = scale.read(biased, at(0).plus(0, 0, op[0].rows));
  scale.write(offsets, row * static_cast<double>(op[0].cols));
  return offsets;
}

}  // namespace

Result<Program> rows_gather_flat(const OpView& op) {
  const OpTensor &table = op[0], &index = op[1];
  const uint64_t m = index.size(), size = table.size(), cols = table.cols;
  TW_TRY(const GatherPrecisions dtypes, gather_precisions(op));
  TW_TRY(const Precision ix, index_dtype(op, index, size));
  TW_TRY(FlatBuild build, FlatBuild::open(op, dtypes.table));
  const BufferId page = build.input(table, {.precision = dtypes.table, .depth = 1});
  const BufferId indices = build.input(index, {.precision = index.stored(ix), .depth = 1});
  const BufferId offsets = row_offsets(build.builder(), op, indices, ix);
  PointwiseStage gather("gather_rows");
  std::vector<Band> bands;
  for (uint64_t k = 0; k < m; ++k) {
    const uint32_t offset = gather.index(offsets, fixed(to_signed(k)), size);
    bands.push_back({to_signed((k + 1) * cols), gather.read(page, at(-to_signed(k * cols)).plus(offset, 1, size))});
  }
  gather.body(banded(bands));
  return within(std::move(build).pointwise(std::move(gather), m * cols, name_of(op), dtypes.claim("rows gather")),
                op.target);
}

Result<Program> rows_gather_tile(const OpView& op) {
  const OpTensor &table = op[0], &index = op[1];
  const uint64_t m = index.size(), row_tiles = op.target.tiles(table.cols), block = op.target.block_of(row_tiles);
  TW_TRY(const GatherPrecisions dtypes, gather_precisions(op));
  TW_TRY(const Precision ix, index_dtype(op, index, std::max(table.rows, m)));
  Builder b(op.target, dtypes.accumulator);
  const TensorId from = declare_flat(b, table, dtypes.table);
  const TensorId out = declare_result(b, op, m * table.cols, dtypes.result);
  const BufferId indices = load_flat(b, index, index.stored(ix));
  std::vector<int64_t> numbers;
  for (uint64_t k = 0; k < m; ++k) numbers.push_back(to_signed(k));
  const TensorId items = b.scalar_table(op.result.name + "__rows_item", ix, numbers);
  const BufferId item = b.buffer("in_item", 1, ix, 1), picked = b.scratch("row_picked", 1, b.dtype(indices), 1);
  b.load("load_item", items, {.steps = {item_y(1)}}, item);
  GenericStage pick = b.compute("row_picked", flat(1));
  const uint32_t number = pick.operand(item, fixed(0));
  const Expr row = pick.read(indices, fixed(0).plus(number, 1, m));
  pick.write(picked, row);
  const BufferId in_row = b.buffer("in_row", block, dtypes.table);
  b.load("gather_row", from,
         {.steps = {item_x(block)}, .indirect = NamedRow(b, picked, ix, table.rows).address("row_index", row_tiles)},
         in_row);
  b.store("store_" + op.result.name, copied(b, in_row, dtypes.result), out,
          {.steps = {item_y(row_tiles), item_x(block)}});
  return within(
      std::move(b).finish(
          {.name = name_of(op), .items = grouped_items(m, row_tiles, block), .claim = dtypes.claim("rows gather")}),
      op.target);
}

// ---- which form ----

Result<Lowered> lower(const graph::RowGather& op, const OpView& view) {
  const OpTensor& table = view[0];
  if (table.dense && table.rows > 1) {
    TW_TRY(Program section, row_gather_dense(op, view));
    return Lowered{{std::move(section)}, "dense", "the table lies dense"};
  }
  const bool whole = view.target.whole(table.cols);
  TW_TRY(Program section, whole ? row_gather_tile(op, view) : row_gather_flat(op, view));
  return Lowered{{std::move(section)}, whole ? "tile" : "flat", whole_rows(view.target, table.cols)};
}

Result<Lowered> lower(const graph::RowsGather&, const OpView& view) {
  const OpTensor& table = view[0];
  if (table.dense && table.rows > 1)
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("gathers {} rows of {}, which lies dense", view[1].size(), table.name),
                  "Gather the rows one by one, or keep the table flat.");
  const bool whole = view.target.whole(table.cols);
  TW_TRY(Program section, whole ? rows_gather_tile(view) : rows_gather_flat(view));
  return Lowered{{std::move(section)}, whole ? "tile" : "flat", whole_rows(view.target, table.cols)};
}

}  // namespace tw::spatial::lower
