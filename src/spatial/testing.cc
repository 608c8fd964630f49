#include "spatial/testing.h"

#include <fmt/format.h>

#include "base/check.h"
#include "spatial/validate.h"

namespace tw::spatial::testing {

Target shipped_target(std::string_view name) {
  Result<Target> target = find_target(name);
  TW_CHECK(target.ok(), "{}", to_text(target.refusal()));
  return *target;
}

const Target& toy_square() {
  static const Target target = shipped_target("toy_square");
  return target;
}

Target toy_target(TileShape tile, uint32_t accumulator_tiles, uint64_t local_bytes) {
  Target target = shipped_target("toy_square");
  target.name = fmt::format("toy_{}x{}", tile.rows, tile.cols);
  target.tile = tile;
  target.accumulator_tiles = accumulator_tiles;
  target.local_bytes = local_bytes;
  return target;
}

Result<Program> flat_add(const Target& target, uint64_t n) {
  TW_TRY(const Precision e, real_element(target, "c"));
  TW_TRY(const Precision accumulator, accumulator_for(target, e, "c"));
  const uint64_t tiles = target.tiles(n);
  Builder b(target, accumulator);
  const TensorId a = b.tensor("a", TensorRole::Input, 1, n, e, GivenInit{});
  const TensorId other = b.tensor("b", TensorRole::Input, 1, n, e, GivenInit{});
  const TensorId c = b.tensor("c", TensorRole::Output, 1, n, e);
  const BufferId in_a = b.buffer("in_a", tiles, e), in_b = b.buffer("in_b", tiles, e), out = b.buffer("out", tiles, e);
  b.load("load_a", a, {}, in_a);
  b.load("load_b", other, {}, in_b);
  GenericStage add = b.compute("add", flat(n));
  const Expr left = add.read(in_a, at(0)), right = add.read(in_b, at(0));
  add.write(out, left + right);
  b.store("store_c", out, c, {});
  return std::move(b).finish(
      {.name = fmt::format("add_{}", n), .items = one_item(tiles), .claim = approx(fmt::format("add in {}", name(e)))});
}

Result<Program> row_sum_fold(const Target& target, uint64_t blocks, bool counted) {
  TW_TRY(const Precision e, real_element(target, "sum"));
  TW_TRY(const Precision accumulator, accumulator_for(target, e, "sum"));
  const uint64_t width = target.tile.cols;
  Builder b(target, accumulator);
  const TensorId x = b.tensor("x", TensorRole::Input, 1, blocks * width, e, GivenInit{});
  const TensorId sum = b.tensor("sum", TensorRole::Output, 1, 1, e);
  const BufferId in_x = b.buffer("in_x", 1, e), out = b.buffer("out", 1, e, 1);
  const BufferId block_sum = b.scratch("block_sum", 1, 1), run = b.scratch("run_sum", 1, 2);

  b.level(FoldLevel::Prologue);
  b.compute("init", flat(1)).write(run, 0.0);
  b.level(FoldLevel::Body);
  b.load("load_x", x, {.steps = {k_block(1)}}, in_x);
  GenericStage fold = b.compute("block_sum", {rows(1), reduce_cols(width)});
  const Expr value = fold.read(in_x, at(0));
  fold.write(block_sum, value);
  GenericStage update = b.compute("fold_sum", flat(1));
  const Expr old = update.read(run, fixed(0)), more = update.read(block_sum, fixed(0));
  update.write(run, old + more);
  b.level(FoldLevel::Epilogue);
  GenericStage last = b.compute("last", flat(1));
  const Expr total = last.read(run, fixed(0));
  last.write(out, total);
  b.store("store_sum", out, sum, {});

  Section section{.name = fmt::format("row_sum_{}", blocks), .items = one_item(1), .claim = approx("row sum")};
  section.plan = BlockPlan{.num_blocks = blocks};
  section.k_tiles = blocks;
  if (counted) {
    const TensorId count = b.tensor("count", TensorRole::Input, 1, 1, *target.integer_element, GivenInit{});
    section.trip = Trip{.tensor = count, .low = 1, .high = static_cast<int64_t>(blocks * width), .per = width};
  }
  return std::move(b).finish(std::move(section));
}

Result<Program> tile_gather(const Target& target, uint64_t rows) {
  TW_TRY(const Precision e, real_element(target, "y"));
  TW_TRY(const Precision accumulator, accumulator_for(target, e, "y"));
  TW_TRY(const Precision index, index_precision(target, rows + 1, "y"));
  const uint64_t width = target.tile.cols;
  Builder b(target, accumulator);
  const TensorId table = b.tensor("table", TensorRole::Param, 1, rows * width, e, GivenInit{});
  const TensorId i = b.tensor("i", TensorRole::Input, 1, 1, index, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, 1, width, e);
  const BufferId in_i = b.buffer("in_i", 1, index, 1), row = b.buffer("row_index", 1, index, 1);
  const BufferId in_row = b.buffer("in_row", 1, e), out = b.buffer("out", 1, e);
  b.load("load_i", i, {}, in_i);
  GenericStage minus = b.compute("row_index", flat(1));
  const Expr one_based = minus.read(in_i, fixed(0));
  minus.write(row, one_based - Expr(1.0));
  b.load("gather_row", table, {.indirect = IndirectTile{.index = row, .high = static_cast<int64_t>(rows) - 1}}, in_row);
  GenericStage copy = b.compute("copy_row", flat(width));
  const Expr v = copy.read(in_row, at(0));
  copy.write(out, v);
  b.store("store_y", out, y, {});
  return std::move(b).finish(
      {.name = fmt::format("row_gather_{}x{}", rows, width), .items = one_item(1), .claim = exact()});
}

Result<Program> streamed_product(const Target& target, uint64_t m_t, uint64_t n_t, uint64_t k_t) {
  TW_TRY(const Precision e, real_element(target, "y"));
  TW_TRY(const Precision accumulator, accumulator_for(target, e, "y"));
  const uint64_t tr = target.tile.rows, tw = target.tile.cols;
  Builder b(target, accumulator);
  const TensorId a = b.tensor("a", TensorRole::Input, m_t * tr, k_t * tw, e, GivenInit{});
  const TensorId w = b.tensor("w", TensorRole::Param, k_t * tr, n_t * tw, e, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, m_t * tr, n_t * tw, e);
  const BufferId in_a = b.buffer("in_a", 1, e), in_w = b.buffer("in_w", 1, e);
  const BufferId sum = b.scratch("sum", 1), out = b.buffer("out", 1, e);
  b.load("load_a", a, {.steps = {item_y(k_t), k_block(1)}}, in_a);
  b.load("load_w", w, {.steps = {item_x(1), k_block(n_t)}}, in_w);
  b.matmul("product", {1, 1, static_cast<uint32_t>(tw)}, in_a, in_w, sum);
  b.level(FoldLevel::Epilogue);
  GenericStage round = b.compute("round", {rows(tr), cols(tw)});
  const Expr v = round.read(sum, ident(static_cast<int64_t>(tw)));
  round.write(out, v);
  b.store("store_y", out, y, {.steps = {item_y(n_t), item_x(1)}});
  Section section{.name = fmt::format("product_{}x{}x{}", m_t, n_t, k_t),
                  .items = grid_items(m_t, n_t),
                  .claim = approx("product")};
  section.plan = BlockPlan{.grid_m = m_t, .grid_n = n_t, .num_blocks = k_t};
  section.k_tiles = k_t;
  return std::move(b).finish(std::move(section));
}

void check_form(std::string_view bytes, Result<Program> (*read)(std::string_view, std::string_view),
                std::string (*write)(const Program&)) {
  const Result<Program> program = read(bytes, "bytes");
  if (!program) return;
  for (const Finding& finding : validate(*program))
    TW_CHECK(!to_text(*program, finding).empty(), "a finding without text");
  const std::string written = write(*program);
  const Result<Program> again = read(written, "written");
  TW_CHECK(again.ok(), "{}\n{}", to_text(again.refusal()), written);
  TW_CHECK(*again == *program, "reads back otherwise:\n{}", written);
}

}  // namespace tw::spatial::testing
