#include "spatial/lower/set_rows.h"

#include <fmt/format.h>

#include "spatial/lower/flat_build.h"
#include "spatial/lower/index.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/set_rows_parts.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {

Result<SetRowsParts> set_rows_parts(const graph::SetRows& spec, const OpView& op) {
  const OpTensor &table = op[0], &source = op[1];
  SetRowsParts parts;
  TW_TRY(parts.row, row_index(op, 2, spec.row, table.rows + 1 - source.rows));
  OpTensor holds_both = table;
  if (magnitude_of(source.fill) > magnitude_of(table.fill)) holds_both.fill = source.fill;
  TW_TRY(parts.table, table_precision(op, holds_both));
  parts.source = source.stored(parts.table);
  TW_TRY(parts.accumulator, accumulator_for(op.target, parts.table, op.subject()));
  parts.name = fmt::format("set_row_{}x{}", table.rows, table.cols);
  if (source.rows > 1) parts.name += fmt::format("_block{}", source.rows);
  parts.claim = claim(parts.table == parts.source || is_integer(parts.table),
                      source.rows > 1 ? "row block write" : "row write", parts.table);
  return parts;
}

namespace {

// A new version of the table, elements lo to lo + span from the source.
struct FlatWrite {
  const OpView& op;
  PointwiseStage& stage;
  BufferId table{};
  BufferId source{};
  uint64_t span = 0;

  void literal(uint64_t first) const {
    const int64_t lo = to_signed(first), hi = to_signed(first + span);
    const Expr old = stage.read(table, at(0)), written = stage.read(source, at(-lo));
    stage.body(select(at_least(Axis::Col, lo), select(less(Axis::Col, hi), written, old), old));
  }

  void named(Builder& b, NamedRow row) const {
    const uint64_t size = op[0].size();
    const BufferId first = row.scaled("row_offset", op[0].cols);
    const BufferId past = b.scratch("row_end", 1, b.dtype(first), 1);
    GenericStage end = b.compute("row_end", flat(1));
    const Expr offset = end.read(first, fixed(0));
    end.write(past, offset + static_cast<double>(span));
    const uint32_t lo = stage.index(first, fixed(0), size), hi = stage.index(past, fixed(0), size);
    const Expr old = stage.read(table, at(0)), written = stage.read(source, at(0).plus(lo, -1, size - span + 1));
    stage.body(select(at_least_operand(Axis::Col, lo), select(less_than_operand(Axis::Col, hi), written, old), old));
  }
};

// Names the tables of the stage's columns, which differ by the rows that a literal writes.
std::string set_rows_name(const RowIndex& row, uint64_t count) {
  std::string name = count == 1 ? "write_row" : fmt::format("write_{}_rows", count);
  return row.named ? name : fmt::format("{}_at{}", name, row.literal);
}

}  // namespace

Result<Program> set_rows_flat(const graph::SetRows& spec, const OpView& op) {
  const OpTensor &table = op[0], &source = op[1];
  TW_TRY(SetRowsParts parts, set_rows_parts(spec, op));
  TW_TRY(FlatBuild build, FlatBuild::open(op, parts.table));
  PointwiseStage stage(set_rows_name(parts.row, source.rows));
  const FlatWrite write{op, stage, build.input(table, {.precision = parts.table, .depth = 1}),
                        build.input(source, {.precision = parts.source, .depth = 1}), source.size()};
  if (parts.row.named) {
    TW_TRY(NamedRow row, named_row(build.builder(), op, parts.row, table.size()));
    write.named(build.builder(), row);
  } else {
    write.literal(parts.row.first() * table.cols);
  }
  return within(std::move(build).pointwise(std::move(stage), table.size(), parts.name, parts.claim), op.target);
}

Result<Program> set_rows_tile(const graph::SetRows& spec, const OpView& op) {
  const OpTensor &table = op[0], &source = op[1];
  const uint64_t row_tiles = op.target.tiles(table.cols), tiles = source.rows * row_tiles;
  const uint64_t block = op.target.block_of(tiles);
  TW_TRY(SetRowsParts parts, set_rows_parts(spec, op));
  Builder b(op.target, parts.accumulator);
  const TensorId from = declare_flat(b, source, parts.source);
  const TensorId to =
      b.tensor(table.name, TensorRole::State, 1, table.size(), parts.table, init_of(table.fill, table.size()));
  TW_TRY(Block rows, row_block(b, op, parts.row, row_tiles, block));
  const BufferId in_rows = b.buffer("in_rows", block, parts.source), out = b.buffer("rows", block, parts.table);
  b.load("load_rows", from, {.steps = {item_x(block)}}, in_rows);
  GenericStage copy = b.compute("copy_row", flat(static_cast<uint64_t>(b.width(out))));
  const Expr value = copy.read(in_rows, at(0));
  copy.write(out, value);
  b.store("scatter_" + table.name, out, to, std::move(rows));
  std::vector<WorkItem> items = row_items(tiles, block);
  for (WorkItem& item : items) item.out.col += parts.row.first() * row_tiles;
  Section section{.name = parts.name, .items = std::move(items), .claim = parts.claim};
  section.plan = tile_row_plan(tiles, block);
  return within(std::move(b).finish(std::move(section)), op.target);
}

Result<Program> set_row_dense(const graph::SetRows& spec, const OpView& op) {
  const OpTensor &table = op[0], &source = op[1];
  const uint64_t row_tiles = op.target.tiles(table.cols), block = op.target.block_of(row_tiles);
  const uint64_t tile_rows = op.target.tile.rows;
  TW_TRY(SetRowsParts parts, set_rows_parts(spec, op));
  Builder b(op.target, parts.accumulator);
  const TensorId from = declare_flat(b, source, parts.source);
  const TensorId to =
      b.tensor(table.name, TensorRole::State, table.rows, table.cols, parts.table, init_of(table.fill, table.size()));
  const BufferId in_row = b.buffer("in_row", block, parts.source), old = b.buffer("in_tile_row", block, parts.table);
  const BufferId out = b.buffer("tile_row", block, parts.table);
  const uint64_t tile_row = parts.row.first() / tile_rows;
  Block read{.base = tile_row * row_tiles, .steps = {item_x(block)}}, written = read;
  std::optional<BufferId> first, past;
  if (parts.row.named) {
    TW_TRY(NamedRow row, named_row(b, op, parts.row, table.rows));
    read.base = written.base = 0;
    read.indirect = row.address("row_gather", row_tiles, tile_rows);
    written.indirect = row.address("row_scatter", row_tiles, tile_rows);
    first = row.in_tile("in_tile_row_index");
    past = b.scratch("in_tile_row_end", 1, b.dtype(*first), 1);
    GenericStage end = b.compute("in_tile_row_end", flat(1));
    const Expr y = end.read(*first, fixed(0));
    end.write(*past, y + 1.0);
  }
  b.load("load_row", from, {.steps = {item_x(block)}}, in_row);
  b.load("gather_" + table.name, to, std::move(read), old);

  const auto width = static_cast<uint64_t>(b.width(out));
  GenericStage stage = b.compute("write_row", {rows(tile_rows), cols(width)});
  const Expr stays = stage.read(old, ident(to_signed(width))), comes = stage.read(in_row, col());
  const auto y = to_signed(parts.row.first() % tile_rows);
  const Pred from_row = first ? at_least_operand(Axis::Row, stage.operand(*first, fixed(0))) : at_least(Axis::Row, y);
  const Pred to_row = past ? less_than_operand(Axis::Row, stage.operand(*past, fixed(0))) : less(Axis::Row, y + 1);
  stage.write(out, select(from_row, select(to_row, comes, stays), stays));
  b.store("scatter_" + table.name, out, to, std::move(written));

  std::vector<WorkItem> items = row_items(row_tiles, block);
  for (WorkItem& item : items) item.out.row = parts.row.named ? 0 : tile_row;
  Section section{.name = parts.name + "_dense", .items = std::move(items), .claim = parts.claim};
  section.plan = tile_row_plan(row_tiles, block);
  return within(std::move(b).finish(std::move(section)), op.target);
}

Result<Lowered> lower(const graph::SetRows& op, const OpView& view) {
  const OpTensor& table = view[0];
  const uint64_t count = view[1].rows;
  if (table.dense && table.rows > 1) {
    TW_TRY(Program section, count == 1 ? set_row_dense(op, view) : set_block_dense(op, view));
    return Lowered{{std::move(section)},
                   count == 1 ? "dense row" : "dense block",
                   fmt::format("the table lies dense, {} row{}", count, count == 1 ? "" : "s")};
  }
  const bool whole = view.target.whole(table.cols);
  TW_TRY(Program section, whole ? set_rows_tile(op, view) : set_rows_flat(op, view));
  return Lowered{{std::move(section)}, whole ? "tile" : "flat", whole_rows(view.target, table.cols)};
}

}  // namespace tw::spatial::lower
