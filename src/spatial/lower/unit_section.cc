#include "spatial/lower/unit_section.h"

#include <fmt/format.h>

#include <limits>

#include "base/check.h"
#include "spatial/lower/block_choice.h"

namespace tw::spatial::lower {
namespace {

Precision precision_of_values(const OpView& op, Precision element) { return op.result.stored(element); }

// The values of a fold that are not padding, by block: the bound of the body's columns.
Result<std::optional<BufferId>> load_live_columns(UnitSection& section, const UnitFold& fold, uint64_t block) {
  const UnitGrid& grid = section.grid();
  Builder& b = section.builder();
  const uint64_t width = b.target().tile.cols;
  if (fold.zero_is_neutral || grid.width % width == 0) return std::optional<BufferId>();
  TW_TRY(const Precision index, index_precision(b.target(), block * width, fold.result));
  std::vector<int64_t> live;
  for (uint64_t done = 0; done < grid.tiles; done += block)
    live.push_back(static_cast<int64_t>(std::min(block * width, grid.width - done * width)));
  const TensorId table = b.scalar_table(fold.result + "_live", index, live);
  const BufferId page = b.buffer("live", 1, index);
  b.load("load_live", table, {.steps = {k_block(1)}}, page);
  return std::optional<BufferId>(page);
}

Result<Program> build_fold(const OpView& op, const UnitGrid& grid, const UnitFold& fold, uint64_t block,
                           uint32_t pages) {
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  TW_TRY(UnitSection section, UnitSection::open(op, grid, precision_of_values(op, element)));
  Builder& b = section.builder();
  const int64_t width = op.target.tile.cols;
  const double start = fold.pool == Pool::Max ? -std::numeric_limits<double>::infinity() : 0.0;
  const BufferId run = b.scratch("run", 1), term = b.scratch("term", block), part = b.scratch("part", 1);

  b.level(FoldLevel::Prologue);
  const BufferId ones = section.load_ones(fold.result);
  std::vector<BufferId> numbers;
  for (const std::string& name : fold.numbers) numbers.push_back(section.load_numbers(name, {.steps = {item_x(1)}}));
  b.compute("start", section.space(1)).write(run, start);

  b.level(FoldLevel::Body);
  const uint64_t columns = block * op.target.tile.cols;
  std::vector<BufferId> values;
  for (size_t i = 0; i < fold.values.size(); ++i)
    values.push_back(section.load_units(*fold.values[i], fmt::format("values{}", i), block,
                                        {.steps = {item_x(grid.tiles), k_block(block)}}, pages));
  TW_TRY(const std::optional<BufferId> live, load_live_columns(section, fold, block));
  GenericStage terms = b.compute("term", section.space(columns));
  for (const BufferId page : values) terms.operand(page, ident(b.width(page)));
  for (const BufferId page : numbers) terms.operand(page, row_of(width));
  terms.write(
      term, live ? select(less_than_operand(Axis::Col, terms.operand(*live, fixed(0))), fold.term, start) : fold.term);
  GenericStage parts = b.compute("fold_block", {rows(grid.parallel), reduce_cols(columns, fold.pool)});
  const Expr value = parts.read(term, ident(b.width(term)));
  parts.scaler(ones);
  parts.write(part, value);
  GenericStage update = b.compute("fold_run", section.space(1));
  const Expr old = update.read(run, row_of(width)), more = update.read(part, row_of(width));
  update.write(run, fold.pool == Pool::Max ? max(old, more) : old + more);

  b.level(FoldLevel::Epilogue);
  const BufferId out = b.buffer("out", 1, b.accumulator());
  std::optional<BufferId> sink;
  if (fold.sink) {
    const bool each = fold.sink->rows > 1;
    const std::vector<Step> steps = each ? std::vector<Step>{item_x(1)} : std::vector<Step>{};
    sink = section.load_row(*fold.sink, "sink", 1, {.steps = steps}, pages);
  }
  GenericStage finish = b.compute("finish", section.space(static_cast<uint64_t>(width)));
  finish.operand(run, row_of(width));
  if (operand_uses(fold.finish).values.size() > 1)
    for (const BufferId page : numbers) finish.operand(page, row_of(width));
  if (sink) finish.operand(*sink, fold.sink->rows > 1 ? row_of(width) : fixed(0));
  finish.write(out, fold.finish);
  const TensorId result =
      b.tensor(fold.result, TensorRole::Output, grid.rows, grid.across * op.target.tile.cols, b.accumulator());
  b.store("store_" + fold.result, out, result, {.steps = {item_x(1)}});

  Section made{.name = fold.program, .claim = claim(false, "row reduction", b.accumulator())};
  for (uint64_t i = 0; i < grid.count; ++i) made.items.push_back({0, i, {i / grid.across, i % grid.across, 1, 1}});
  made.plan = BlockPlan{.grid_n = grid.count, .num_blocks = grid.tiles / block, .block_k = block};
  made.k_tiles = grid.tiles;
  return std::move(b).finish(std::move(made));
}

Result<Program> build_map(const OpView& op, const UnitGrid& grid, const UnitMap& map, uint64_t block, uint32_t pages) {
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  TW_TRY(UnitSection section, UnitSection::open(op, grid, precision_of_values(op, element)));
  Builder& b = section.builder();
  const int64_t width = op.target.tile.cols;
  const BufferId out = b.buffer("out", block, section.precision(), pages);
  GenericStage stage = b.compute("rescale", section.space(block * op.target.tile.cols));
  const Block address{.steps = {item_y(grid.tiles), item_x(block)}};
  for (size_t i = 0; i < map.values.size(); ++i) {
    const BufferId page = section.load_units(*map.values[i], fmt::format("values{}", i), block, address, pages);
    stage.operand(page, ident(b.width(page)));
  }
  for (const std::string& name : map.numbers)
    stage.operand(section.load_numbers(name, {.steps = {item_y(1)}}), row_of(width));
  for (size_t i = 0; i < map.shared.size(); ++i)
    stage.operand(section.load_row(*map.shared[i], fmt::format("row{}", i), block, {.steps = {item_x(block)}}, pages),
                  col());
  stage.write(out, map.body);
  const TensorId result = b.tensor(op.result.name, TensorRole::Output, grid.rows, grid.cols, section.precision());
  b.store("store_" + op.result.name, out, result, address);

  Section made{.name = map.program, .claim = claim(false, map.what, section.precision())};
  made.items.reserve(grid.count * (grid.tiles / block));
  for (uint64_t i = 0; i < grid.count; ++i)
    for (uint64_t j = 0; j < grid.tiles / block; ++j) made.items.push_back({i, j, grid.rect(i, j * block, block)});
  made.plan = tile_row_plan(grid.tiles, block, grid.count);
  return std::move(b).finish(std::move(made));
}

}  // namespace

UnitGrid UnitGrid::flat(const OpTensor& tensor, uint64_t width, const Target& target) {
  const uint64_t n = tensor.size();
  TW_CHECK(n % width == 0 && (target.whole(width) || width == n), "units of {} in a flat row of {}", width, n);
  return {.cols = n, .width = width, .tiles = target.tiles(width), .across = n / width, .count = n / width};
}

UnitGrid UnitGrid::dense(const OpTensor& tensor, uint64_t width, const Target& target) {
  const uint64_t across = tensor.cols / width;
  TW_CHECK(tensor.cols % width == 0 && (target.whole(width) || across == 1), "units of {} in rows of {}", width,
           tensor.cols);
  const uint64_t tile_rows = (tensor.rows + target.tile.rows - 1) / target.tile.rows;
  return {.rows = tensor.rows,
          .cols = tensor.cols,
          .width = width,
          .tiles = target.tiles(width),
          .across = across,
          .parallel = std::min<uint64_t>(tensor.rows, target.tile.rows),
          .count = tile_rows * across};
}

std::string UnitGrid::text() const {
  return across == 1 ? fmt::format("{}x{}", rows, width) : fmt::format("{}x{}x{}", rows, across, width);
}

Result<UnitSection> UnitSection::open(const OpView& op, const UnitGrid& grid, Precision precision) {
  TW_TRY(const Precision accumulator, accumulator_for(op.target, precision, op.subject()));
  return UnitSection(op, grid, precision, accumulator);
}

BufferId UnitSection::load(const OpTensor& tensor, uint64_t rows, uint64_t cols, const std::string& what,
                           uint64_t tiles, Block address, uint32_t pages) {
  const Precision dtype = tensor.stored(precision_);
  const auto [at, fresh] = tensors_.try_emplace(tensor.name);
  if (fresh)
    at->second = builder_.tensor(tensor.name, tensor.read_role(), rows, cols, dtype, init_of(tensor.fill, rows * cols));
  const BufferId page = builder_.buffer("in_" + what, tiles, dtype, pages);
  builder_.load("load_" + what, at->second, std::move(address), page);
  return page;
}

BufferId UnitSection::load_units(const OpTensor& tensor, const std::string& what, uint64_t tiles, Block address,
                                 uint32_t pages) {
  return load(tensor, grid_.rows, grid_.cols, what, tiles, std::move(address), pages);
}

BufferId UnitSection::load_row(const OpTensor& tensor, const std::string& what, uint64_t tiles, Block address,
                               uint32_t pages) {
  return load(tensor, tensor.rows, tensor.cols, what, tiles, std::move(address), pages);
}

BufferId UnitSection::load_numbers(const std::string& tensor, Block address) {
  const OpTensor numbers{.name = tensor, .dtype = builder_.accumulator()};
  return load(numbers, grid_.rows, grid_.across * builder_.target().tile.cols, tensor, 1, std::move(address), 2);
}

BufferId UnitSection::load_ones(const std::string& result) {
  const std::string name = fmt::format("{}__ones_{}", result, spatial::name(precision_));
  const BufferId page = builder_.buffer("in_ones", 1, precision_, 1);
  builder_.load("load_ones", builder_.ones(name, precision_), {}, page);
  return page;
}

Result<Program> unit_fold(const OpView& op, const UnitGrid& grid, const UnitFold& fold) {
  return first_fitting(page_sizes(grid.tiles, op.target), op.target,
                       [&](uint64_t block, uint32_t pages) { return build_fold(op, grid, fold, block, pages); });
}

Result<Program> unit_map(const OpView& op, const UnitGrid& grid, const UnitMap& map) {
  return first_fitting(block_sizes(grid.tiles, grid.count * grid.tiles, op.target), op.target,
                       [&](uint64_t block, uint32_t pages) { return build_map(op, grid, map, block, pages); });
}

}  // namespace tw::spatial::lower
