#include "spatial/lower/moves.h"

#include <fmt/format.h>

#include "spatial/lower/dense_build.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/unit_tiles.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// ---- transpose ----

std::string transpose_name(const OpTensor& x) { return fmt::format("transpose_{}x{}", x.rows, x.cols); }

// Element c of the result is x[c] of a row or a column, else, in the band of new row j, c = j * rows + i and
// x[i * cols + j].
Expr transposed(PointwiseStage& stage, BufferId page, int64_t rows, int64_t cols) {
  if (rows == 1 || cols == 1) return stage.read(page, at(0));
  std::vector<Band> bands;
  for (int64_t j = 0; j < cols; ++j)
    bands.push_back({(j + 1) * rows, stage.read(page, map3(j * (1 - rows * cols), 0, cols))});
  return banded(bands);
}

// ---- head slice ----

Result<void> check(const graph::HeadSlice& op, const OpView& view) {
  const auto no = [&](std::string reason) {
    return refuse(RefusalKind::Unsupported, view.subject(), std::move(reason), "Slice inside the units of a row.");
  };
  if (op.every == 0 || op.width == 0)
    return no(fmt::format("slices {} of every {} values, expected at least 1 of each", op.width, op.every));
  if (uint64_t{op.from} + op.width > op.every)
    return no(fmt::format("slices values {} to {} of units of {}", op.from, uint64_t{op.from} + op.width, op.every));
  if (view[0].cols % op.every != 0)
    return no(fmt::format("slices units of {} from rows of {}, which are not whole units", op.every, view[0].cols));
  return {};
}

bool slices_whole_tiles(const graph::HeadSlice& op, const Target& target) {
  return target.whole(op.every) && target.whole(op.from) && target.whole(op.width);
}

std::string slice_name(const graph::HeadSlice& op, const OpView& view) {
  return fmt::format("head_slice_{}x{}_of_{}", view[0].size() / op.every, op.width, op.every);
}
std::string dense_slice_name(const graph::HeadSlice& op, const OpView& view) {
  return fmt::format("head_slice_{}x{}x{}_of_{}", view[0].rows, view[0].cols / op.every, op.width, op.every);
}

// Unit g of the result, read by read(shift).
template <class Read>
Expr sliced(const graph::HeadSlice& op, uint64_t units, Read&& read) {
  const int64_t width = op.width, left_out = int64_t{op.every} - op.width;
  std::vector<Band> bands;
  for (int64_t g = 0; g < static_cast<int64_t>(units); ++g)
    bands.push_back({(g + 1) * width, read(g * left_out + int64_t{op.from})});
  return banded(bands);
}

}  // namespace

Result<Program> transpose_flat(const OpView& op) {
  const OpTensor& x = op[0];
  TW_TRY(const Precision precision, element_of(op, x));
  const auto build = [&](uint32_t pages) -> Result<Program> {
    TW_TRY(FlatBuild made, FlatBuild::open(op, precision));
    const BufferId page = made.input(x, {.depth = pages});
    PointwiseStage stage("transpose");
    stage.body(transposed(stage, page, static_cast<int64_t>(x.rows), static_cast<int64_t>(x.cols)));
    return std::move(made).pointwise(std::move(stage), x.size(), transpose_name(x),
                                     moved("transpose", precision, op.result.stored(precision)));
  };
  return within(paged(op.target, build), op.target);
}

Result<Program> transpose_tiles(const OpView& op) {
  const OpTensor& x = op[0];
  const TileShape tile = op.target.tile;
  if (!tile.square())
    return refuse(
        RefusalKind::Unsupported, op.subject(),
        fmt::format("transposes tile by tile, the tiles of target {} are {}x{}", op.target.name, tile.rows, tile.cols),
        "Use the flat form, or a target with square tiles.");
  TW_TRY(const Precision precision, element_of(op, x));
  TW_TRY(const Precision accumulator, accumulator_for(op.target, precision, op.subject()));
  const Precision stored = op.result.stored(precision);
  const TileGrid from = grid_of({.rows = x.rows, .cols = x.cols}, tile);
  Builder b(op.target, accumulator);
  const TensorId in = b.tensor(x.name, x.read_role(), x.rows, x.cols, precision, init_of(x.fill, x.size()));
  const TensorId result = b.tensor(op.result.name, TensorRole::Output, x.cols, x.rows, stored);
  const BufferId page = b.buffer("in_x", 1, precision), out = b.buffer("out", 1, stored);
  b.load("load_x", in, {.steps = {item_y(1), item_x(from.cols)}}, page);
  GenericStage stage = b.compute("transpose", {rows(tile.rows), cols(tile.cols)});
  const Expr value = stage.read(page, map3(0, 1, tile.cols));
  stage.write(out, value);
  b.store("store_" + op.result.name, out, result, {.steps = {item_y(from.rows), item_x(1)}});
  return std::move(b).finish({.name = transpose_name(x) + "_tiled",
                              .items = grid_items(from.cols, from.rows),
                              .claim = moved("transpose", precision, stored)});
}

Result<Program> head_slice_flat(const graph::HeadSlice& op, const OpView& view) {
  TW_TRY_VOID(check(op, view));
  const OpTensor& x = view[0];
  TW_TRY(const Precision precision, element_of(view, x));
  const uint64_t units = x.size() / op.every;
  const auto build = [&](uint32_t pages) -> Result<Program> {
    TW_TRY(FlatBuild made, FlatBuild::open(view, precision));
    const BufferId page = made.input(x, {.depth = pages});
    PointwiseStage stage("head_slice");
    stage.body(sliced(op, units, [&](int64_t shift) { return stage.read(page, at(shift)); }));
    return std::move(made).pointwise(std::move(stage), units * op.width, slice_name(op, view),
                                     moved("head slice", precision, view.result.stored(precision)));
  };
  return within(paged(view.target, build), view.target);
}

Result<Program> head_slice_rows(const graph::HeadSlice& op, const OpView& view) {
  TW_TRY_VOID(check(op, view));
  const OpTensor& x = view[0];
  TW_TRY(const Precision precision, element_of(view, x));
  const auto build = [&](uint32_t pages) -> Result<Program> {
    TW_TRY(DenseBuild made, DenseBuild::open(view, precision, pages));
    const BufferId page = made.input(x);
    PointwiseStage stage("head_slice");
    stage.body(sliced(op, x.cols / op.every, [&](int64_t shift) { return made.read(stage, page, shift); }));
    return std::move(made).pointwise(std::move(stage), dense_slice_name(op, view),
                                     moved("head slice", precision, view.result.stored(precision)));
  };
  return within(paged(view.target, build), view.target);
}

Result<Program> head_slice_tiles(const graph::HeadSlice& op, const OpView& view) {
  TW_TRY_VOID(check(op, view));
  const OpTensor& x = view[0];
  const Target& target = view.target;
  if (!slices_whole_tiles(op, target))
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("moves tiles of {} columns, the slice is of {} values from {} of every {}",
                              target.tile.cols, op.width, op.from, op.every),
                  "Use the flat form.");
  TW_TRY(const Precision precision, element_of(view, x));
  TW_TRY(const Precision accumulator, accumulator_for(target, precision, view.subject()));
  const Precision stored = view.result.stored(precision);
  const uint64_t tiles = target.tiles(op.width), block = target.block_of(tiles);
  const UnitTiles units{.rows = x.rows, .heads = x.cols / op.every, .tiles = tiles, .block = block};
  const uint64_t every = target.tiles(op.every), first = op.from / target.tile.cols;
  Builder b(target, accumulator);
  const TensorId in = b.tensor(x.name, x.read_role(), x.rows, x.cols, precision, init_of(x.fill, x.size()));
  const TensorId result = b.tensor(view.result.name, TensorRole::Output, x.rows, x.cols / op.every * op.width, stored);
  const BufferId page = b.buffer("in_x", block, precision), out = b.buffer("out", block, stored);
  b.load("load_x", in, {.base = first, .steps = {item_y(every), item_x(block)}}, page);
  GenericStage copy = b.compute("copy_row", units.space(target));
  const Expr value = copy.read(page, ident(b.width(page)));
  copy.write(out, value);
  b.store("store_" + view.result.name, out, result, {.steps = {item_y(tiles), item_x(block)}});
  return std::move(b).finish({.name = (x.rows > 1 ? dense_slice_name(op, view) : slice_name(op, view)) + "_tiled",
                              .items = units.items(target),
                              .claim = moved("head slice", precision, stored)});
}

Result<Lowered> lower(const graph::Transpose&, const OpView& view) {
  const OpTensor& x = view[0];
  const uint64_t tiles = view.target.tiles(x.size());
  if (view.target.wide(x.size()) && x.rows > 1 && x.cols > 1 && view.target.tile.square()) {
    TW_TRY(Program section, transpose_tiles(view));
    return Lowered{{std::move(section)}, "tiles", over_a_page(view.target, tiles)};
  }
  TW_TRY(Program section, transpose_flat(view));
  if (view.target.wide(x.size()))
    return Lowered{{std::move(section)}, "column blocks", over_a_page(view.target, tiles)};
  return Lowered{{std::move(section)}, "flat", within_a_page(view.target, tiles)};
}

Result<Lowered> lower(const graph::HeadSlice& op, const OpView& view) {
  const Target& target = view.target;
  TW_TRY_VOID(check(op, view));
  if (slices_whole_tiles(op, target)) {
    TW_TRY(Program section, head_slice_tiles(op, view));
    return Lowered{
        {std::move(section)}, "tiles", fmt::format("{}, {} and {} are whole tiles", op.every, op.from, op.width)};
  }
  const uint64_t n = view[0].size() / op.every * op.width, tiles = target.tiles(n);
  if (view[0].rows > 1 && target.wide(n)) {
    TW_TRY(Program section, head_slice_rows(op, view));
    return Lowered{{std::move(section)}, "rows", over_a_page(target, tiles)};
  }
  TW_TRY(Program section, head_slice_flat(op, view));
  if (target.wide(n)) return Lowered{{std::move(section)}, "column blocks", over_a_page(target, tiles)};
  return Lowered{{std::move(section)}, "flat", within_a_page(target, tiles)};
}

}  // namespace tw::spatial::lower
