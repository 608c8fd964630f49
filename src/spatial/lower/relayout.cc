#include "spatial/lower/relayout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/round.h"
#include "spatial/builder.h"
#include "spatial/lower/block_choice.h"

namespace tw::spatial::lower {
namespace {

// What both directions know of the tensor.
struct Shape {
  Shape(const RelayoutRequest& request, const Target& target)
      : rows(request.rows),
        cols(request.cols),
        tile_rows(target.tile.rows),
        width(target.tile.cols),
        row_t(target.tiles(cols)),
        grid_rows(ceil_div(rows, tile_rows)),
        flat_t(target.tiles(rows * cols)),
        taken(std::min(rows, tile_rows)) {}

  uint64_t rows, cols;
  uint64_t tile_rows, width;
  uint64_t row_t, grid_rows;  // tiles of the dense form
  uint64_t flat_t;            // tiles of the flat form of narrow rows
  uint64_t taken;             // rows of a tile row that is full

  [[nodiscard]] bool ragged() const { return rows > tile_rows && rows % tile_rows != 0; }
  // Flat tiles of the rows of one tile row, when rows are narrow.
  [[nodiscard]] uint64_t run_t() const { return ceil_div(taken * cols, width); }
};

Result<void> runs_end_at_tiles(const RelayoutRequest& request, const Shape& shape) {
  const uint64_t run = shape.tile_rows * shape.cols;
  if (shape.rows <= shape.tile_rows || run % shape.width == 0) return {};
  return refuse(
      RefusalKind::Unsupported, request.to,
      fmt::format("{} rows of {} elements: the {} rows of a tile hold {} elements, which do not end at a tile "
                  "of {} columns",
                  shape.rows, shape.cols, shape.tile_rows, run, shape.width),
      "Use rows that are whole tiles, or no more rows than a tile has.");
}

Result<Builder> open(const RelayoutRequest& request, const Target& target) {
  TW_TRY(const Precision accumulator, accumulator_for(target, request.dtype, request.to));
  return Builder(target, accumulator);
}

// ---- to dense ----

// How an item takes `block` tiles of a tile row out of the flat form: it loads `height` x `width` tiles, in which row r
// of the tile row starts at element r * row. The tiles are at step_y, step_x of the item, or where `windows` say: the
// last tile row, which is not full, is loaded with rows before it, which are skipped.
struct Cut {
  struct Window {
    uint64_t first = 0;  // tile, without step_x
    uint64_t skip = 0;   // elements of the page
  };
  uint64_t block = 1;
  uint64_t height = 1, width = 1, stride = 0;
  uint64_t row = 1;
  uint64_t step_y = 0, step_x = 0;
  std::vector<Window> windows;  // by item; empty: nothing is skipped
};

struct LoadedCut {
  BufferId rows{};
  std::optional<BufferId> skip;
  uint64_t most_skipped = 0;
};

Result<LoadedCut> load_cut(Builder& b, const RelayoutRequest& request, const Cut& cut, uint64_t blocks,
                           uint32_t pages) {
  const TensorId from =
      b.tensor(request.from, TensorRole::Input, 1, request.rows * request.cols, request.dtype, request.init);
  LoadedCut loaded{.rows = b.buffer("in_rows", cut.height * cut.width, request.dtype, pages)};
  Block address{.height = cut.height, .stride_h = cut.stride};
  if (cut.step_x > 0) address.steps = {item_x(cut.step_x)};
  if (cut.windows.empty()) {
    address.steps.push_back(item_y(cut.step_y));
  } else {
    std::vector<int64_t> values;
    uint64_t last = 0;
    for (const Cut::Window& window : cut.windows) {
      values.push_back(static_cast<int64_t>(window.first));
      values.push_back(static_cast<int64_t>(window.skip));
      last = std::max(last, window.first);
      loaded.most_skipped = std::max(loaded.most_skipped, window.skip);
    }
    TW_TRY(const Precision index, index_precision(b.target(), std::max(last, loaded.most_skipped), request.to));
    const TensorId table = b.scalar_table(request.to + "__window", index, values);
    const BufferId first = b.buffer("first_tile", 1, index, 1), skip = b.buffer("skip", 1, index, 1);
    const std::vector<Step> at{item_y(2 * blocks), item_x(2)};
    b.load("load_first_tile", table, {.steps = at}, first);
    b.load("load_skip", table, {.base = 1, .steps = at}, skip);
    address.indirect = IndirectTile{.index = first, .high = static_cast<int64_t>(last)};
    loaded.skip = skip;
  }
  b.load("load_rows", from, std::move(address), loaded.rows);
  return loaded;
}

Result<Program> to_dense(const RelayoutRequest& request, const Target& target, const Cut& cut, uint32_t pages) {
  const Shape shape(request, target);
  const uint64_t blocks = shape.row_t / cut.block;
  TW_TRY(Builder b, open(request, target));
  TW_TRY(const LoadedCut loaded, load_cut(b, request, cut, blocks, pages));
  const TensorId to = b.tensor(request.to, TensorRole::Output, request.rows, request.cols, request.dtype);
  const BufferId out = b.buffer("out", cut.block, request.dtype, pages);
  // A page of the whole row ends with the row: what comes after it in the run is another's.
  const uint64_t columns = blocks == 1 ? shape.cols : cut.block * shape.width;
  GenericStage stage = b.compute("relayout", {rows(shape.taken), cols(columns)});
  ElemAccess map = map3(0, static_cast<int64_t>(cut.row), 1);
  if (loaded.skip) map = map.plus(stage.operand(*loaded.skip, fixed(0)), 1, loaded.most_skipped + 1);
  const Expr value = stage.read(loaded.rows, map);
  stage.write(out, value);
  b.store("store_dense", out, to, {.steps = {item_y(shape.row_t), item_x(cut.block)}});
  Section section{
      .name = fmt::format("relayout_dense_{}x{}", request.rows, request.cols), .items = {}, .claim = exact()};
  section.items.reserve(shape.grid_rows * blocks);
  for (uint64_t y = 0; y < shape.grid_rows; ++y)
    for (uint64_t x = 0; x < blocks; ++x) section.items.push_back({y, x, {y, x * cut.block, 1, cut.block}});
  section.plan = tile_row_plan(shape.row_t, cut.block, shape.grid_rows);
  return std::move(b).finish(std::move(section));
}

// ---- to rows ----

// Item (y, x) stores `block` tiles of the flat form at tile y * rows_step + x * block. With fewer blocks in the last
// row of items than in the others.
std::vector<WorkItem> flat_items(uint64_t tiles, uint64_t per_y, uint64_t block) {
  std::vector<WorkItem> items;
  items.reserve(tiles / block);
  for (uint64_t at = 0; at < tiles; at += block) items.push_back({at / per_y, at % per_y / block, {0, at, 1, block}});
  return items;
}

BlockPlan flat_plan(const std::vector<WorkItem>& items, uint64_t block) {
  return {.per_site_n = block, .grid_n = items.size(), .block_n = block};
}

struct RowsPlan {
  uint64_t together = 1;  // flat rows of an item
  uint64_t block = 1;     // tiles of each
};

Result<Program> to_rows(const RelayoutRequest& request, const Target& target, const std::vector<uint64_t>& picks,
                        RowsPlan plan, std::string name, uint32_t pages) {
  const Shape shape(request, target);
  TW_TRY(const Precision index, index_precision(target, request.rows, request.to));
  TW_TRY(Builder b, open(request, target));
  const TensorId from =
      b.tensor(request.from, TensorRole::Input, request.rows, request.cols, request.dtype, request.init);
  std::vector<int64_t> values;
  for (size_t i = 0; i < picks.size(); i += plan.together) {
    values.push_back(static_cast<int64_t>(picks[i]));
    values.push_back(static_cast<int64_t>(picks[i] % shape.tile_rows));
  }
  const TensorId table = b.scalar_table(request.to + "__row_at", index, values);
  const TensorId to = b.tensor(request.to, TensorRole::Output, 1, picks.size() * request.cols, request.dtype);
  const uint64_t tiles = plan.together * plan.block;
  const BufferId row = b.buffer("row", 1, index, 1), in_tile = b.buffer("in_tile_row", 1, index, 1);
  const BufferId page = b.buffer("in_tile_rows", plan.block, request.dtype, pages);
  const BufferId out = b.buffer("out", tiles, request.dtype, pages);
  b.load("load_row", table, {.steps = {item_y(2)}}, row);
  b.load("load_in_tile_row", table, {.base = 1, .steps = {item_y(2)}}, in_tile);
  b.load("gather_tile_row", from,
         {.steps = {item_x(plan.block)},
          .indirect = IndirectTile{.index = row,
                                   .tile_stride = shape.row_t,
                                   .elems_per_tile = shape.tile_rows,
                                   .high = static_cast<int64_t>(request.rows) - 1}},
         page);
  // Rows of the plane follow one another as flat rows do.
  GenericStage lift = b.compute("lift_row", flat(tiles * shape.width));
  const uint32_t at_row = lift.operand(in_tile, fixed(0));
  const Expr value = lift.read(page, at(0).plus(at_row, b.width(page), shape.tile_rows));
  lift.write(out, value);
  b.store("store_row", out, to, {.steps = {item_y(plan.together * shape.row_t), item_x(plan.block)}});
  Section section{.name = std::move(name),
                  .items = flat_items(picks.size() * shape.row_t, plan.together * shape.row_t, tiles),
                  .claim = exact()};
  section.plan = flat_plan(section.items, tiles);
  return std::move(b).finish(std::move(section));
}

Result<Program> to_narrow_rows(const RelayoutRequest& request, const Target& target, uint64_t block, uint32_t pages) {
  const Shape shape(request, target);
  const uint64_t run_t = shape.run_t(), plane = shape.row_t * shape.width, extent = shape.tile_rows * plane;
  TW_TRY(const Precision index, index_precision(target, extent, request.to));
  TW_TRY(Builder b, open(request, target));
  const TensorId from =
      b.tensor(request.from, TensorRole::Input, request.rows, request.cols, request.dtype, request.init);
  // Where in a tile row of the dense form each element of its run is.
  std::vector<int64_t> places(run_t * shape.width);
  for (uint64_t p = 0; p < shape.taken * shape.cols; ++p)
    places[p] = static_cast<int64_t>(p / shape.cols * plane + p % shape.cols);
  const uint64_t count = places.size();
  const TensorId table =
      b.tensor(request.to + "__at", TensorRole::Param, 1, count, index, integer_values(std::move(places)));
  const TensorId to = b.tensor(request.to, TensorRole::Output, 1, request.rows * request.cols, request.dtype);
  const BufferId at_page = b.buffer("in_at", block, index, pages);
  const BufferId page = b.buffer("in_tile_row", shape.row_t, request.dtype, pages);
  const BufferId out = b.buffer("out", block, request.dtype, pages);
  b.load("load_at", table, {.steps = {item_x(block)}}, at_page);
  b.load("load_tile_row", from, {.steps = {item_y(shape.row_t)}}, page);
  GenericStage stage = b.compute("relayout", flat(block * shape.width));
  const uint32_t place = stage.operand(at_page, at(0));
  const Expr value = stage.read(page, fixed(0).plus(place, 1, extent));
  stage.write(out, value);
  b.store("store_rows", out, to, {.steps = {item_y(run_t), item_x(block)}});
  Section section{.name = fmt::format("relayout_rows_{}x{}", request.rows, request.cols),
                  .items = flat_items(shape.flat_t, run_t, block),
                  .claim = exact()};
  section.plan = flat_plan(section.items, block);
  return std::move(b).finish(std::move(section));
}

}  // namespace

Result<Program> dense_of_rows(const RelayoutRequest& request, const Target& target) {
  TW_CHECK(target.whole(request.cols), "rows of {} elements are no whole tiles", request.cols);
  const Shape shape(request, target);
  const auto build = [&](uint64_t block, uint32_t pages) {
    Cut cut{.block = block,
            .height = shape.taken,
            .width = block,
            .stride = shape.row_t,
            .row = block * shape.width,
            .step_y = shape.tile_rows * shape.row_t,
            .step_x = block};
    for (uint64_t y = 0; y < shape.grid_rows && shape.ragged(); ++y) {
      const uint64_t first = std::min(y * shape.tile_rows, shape.rows - shape.tile_rows);
      const Cut::Window window{first * shape.row_t, (y * shape.tile_rows - first) * cut.row};
      cut.windows.insert(cut.windows.end(), shape.row_t / block, window);
    }
    return to_dense(request, target, cut, pages);
  };
  return first_fitting(block_sizes(shape.row_t, shape.grid_rows * shape.row_t, target), target, build);
}

Result<Program> dense_of_narrow_rows(const RelayoutRequest& request, const Target& target) {
  const Shape shape(request, target);
  TW_TRY_VOID(runs_end_at_tiles(request, shape));
  const auto build = [&](uint64_t block, uint32_t pages) {
    const uint64_t run_t = shape.run_t(), blocks = shape.row_t / block;
    Cut cut{.block = block, .width = run_t, .row = shape.cols, .step_y = run_t};
    for (uint64_t y = 0; y < shape.grid_rows && (shape.ragged() || blocks > 1); ++y) {
      const uint64_t first = std::min(y * run_t, shape.flat_t - run_t);
      for (uint64_t x = 0; x < blocks; ++x)
        cut.windows.push_back({first, (y * run_t - first + x * block) * shape.width});
    }
    return to_dense(request, target, cut, pages);
  };
  return first_fitting(block_sizes(shape.row_t, shape.grid_rows * shape.row_t, target), target, build);
}

Result<Program> rows_of_dense(const RelayoutRequest& request, const Target& target,
                              const std::vector<uint64_t>& picks) {
  TW_CHECK(target.whole(request.cols), "rows of {} elements are no whole tiles", request.cols);
  const Shape shape(request, target);
  std::string name = fmt::format("relayout_rows_{}_of_{}x{}", picks.size(), request.rows, request.cols);
  return first_fitting(
      block_sizes(shape.row_t, picks.size() * shape.row_t, target), target,
      [&](uint64_t block, uint32_t pages) { return to_rows(request, target, picks, {.block = block}, name, pages); });
}

Result<Program> rows_of_dense(const RelayoutRequest& request, const Target& target) {
  TW_CHECK(target.whole(request.cols), "rows of {} elements are no whole tiles", request.cols);
  const Shape shape(request, target);
  std::vector<uint64_t> all(request.rows);
  std::iota(all.begin(), all.end(), uint64_t{0});
  const std::string name = fmt::format("relayout_rows_{}x{}", request.rows, request.cols);
  const auto build = [&](uint64_t tiles, uint32_t pages) {
    // Whole rows while they fit a page, each loaded tile for several of them.
    const RowsPlan plan{.together = std::max<uint64_t>(1, tiles / shape.row_t), .block = std::min(tiles, shape.row_t)};
    return to_rows(request, target, all, plan, name, pages);
  };
  std::vector<uint64_t> blocks = block_sizes(shape.row_t, shape.rows * shape.row_t, target);
  if (shape.row_t <= target.accumulator_tiles)
    for (const uint64_t together : block_sizes(std::gcd(shape.rows, shape.tile_rows), shape.rows, target, 1))
      if (together * shape.row_t <= target.accumulator_tiles) {
        if (together > 1) blocks.insert(blocks.begin(), together * shape.row_t);
        break;
      }
  return first_fitting(blocks, target, build);
}

Result<Program> narrow_rows_of_dense(const RelayoutRequest& request, const Target& target) {
  const Shape shape(request, target);
  TW_TRY_VOID(runs_end_at_tiles(request, shape));
  // The run of the last tile row may be shorter.
  const uint64_t last = shape.flat_t - (shape.grid_rows - 1) * shape.run_t();
  return first_fitting(block_sizes(std::gcd(shape.run_t(), last), shape.flat_t, target), target,
                       [&](uint64_t block, uint32_t pages) { return to_narrow_rows(request, target, block, pages); });
}

Result<Program> relayout(const RelayoutRequest& request, const Target& target) {
  if (request.to_dense)
    return target.whole(request.cols) ? dense_of_rows(request, target) : dense_of_narrow_rows(request, target);
  return target.whole(request.cols) ? rows_of_dense(request, target) : narrow_rows_of_dense(request, target);
}

Relayout relayout_for(const Target& target) {
  return [target](const RelayoutRequest& request) -> Result<std::vector<Program>> {
    TW_TRY(Program section, relayout(request, target));
    return std::vector<Program>{std::move(section)};
  };
}

}  // namespace tw::spatial::lower
