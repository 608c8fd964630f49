#include "spatial/certify/testing.h"

#include <fmt/format.h>

namespace tw::spatial::testing {
namespace {

struct Types {
  Precision element;
  Precision accumulator;
};
Result<Types> types_of(const Target& target) {
  TW_TRY(const Precision element, real_element(target, "y"));
  TW_TRY(const Precision accumulator, accumulator_for(target, element, "y"));
  return Types{element, accumulator};
}

// A page of `out` from the whole pages a and b.
void add_pages(Builder& b, std::string name, BufferId left, BufferId right, BufferId out) {
  const auto tile_cols = static_cast<uint64_t>(b.width(out));
  GenericStage add = b.compute(std::move(name), {rows(b.target().tile.rows), cols(tile_cols)});
  const Expr l = add.read(left, ident(b.width(left))), r = add.read(right, ident(b.width(right)));
  add.write(out, l + r);
}

// Loads tensor `index` and leaves it less one, 0-based, in a queue.
BufferId zero_based(Builder& b, TensorId index, const std::string& name) {
  const Precision dtype = b.program().at(index).dtype;
  const BufferId in = b.buffer("in_" + name, 1, dtype, 1), out = b.buffer(name, 1, dtype, 1);
  b.load("load_" + name, index, {}, in);
  GenericStage minus = b.compute(name, flat(1));
  const Expr value = minus.read(in, fixed(0));
  minus.write(out, value - Expr(1.0));
  return out;
}

}  // namespace

Result<Program> chunked_add(const Target& target, uint64_t items, uint64_t chunks) {
  TW_TRY(const Types t, types_of(target));
  const uint64_t tr = target.tile.rows, tw = target.tile.cols;
  Builder b(target, t.accumulator);
  const TensorId x = b.tensor("x", TensorRole::Input, items * chunks * tr, tw, t.element, GivenInit{});
  const TensorId row = b.tensor("row", TensorRole::Param, tr, tw, t.element, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, items * chunks * tr, tw, t.element);
  const BufferId in_x = b.buffer("in_x", 1, t.element), in_row = b.buffer("in_row", 1, t.element);
  const BufferId out = b.buffer("out", 1, t.element);
  b.load("load_x", x, {.steps = {item_y(chunks), sub_h(1)}}, in_x);
  b.load("load_row", row, {.steps = {sub_h(0)}}, in_row);
  add_pages(b, "add", in_x, in_row, out);
  b.store("store_y", out, y, {.steps = {item_y(chunks), sub_h(1)}});
  std::vector<WorkItem> work;
  for (uint64_t i = 0; i < items; ++i) work.push_back({i, 0, {i * chunks, 0, chunks, 1}});
  return std::move(b).finish(
      {.name = "chunked_add", .items = work, .claim = approx("add"), .plan = chunked_plan(chunks, items)});
}

Result<Program> row_update(const Target& target, uint64_t table_rows, uint64_t blocks) {
  TW_TRY(const Types t, types_of(target));
  TW_TRY(const Precision integer, index_precision(target, table_rows + 1, "state"));
  const uint64_t tw = target.tile.cols;
  Builder b(target, t.accumulator);
  const TensorId state = b.tensor("state", TensorRole::State, 1, table_rows * blocks * tw, t.element, GivenInit{});
  const TensorId i = b.tensor("i", TensorRole::Input, 1, 1, integer, GivenInit{});
  const BufferId gather = zero_based(b, i, "row_gather"), scatter = zero_based(b, i, "row_scatter");
  const BufferId in = b.buffer("in_state", 1, t.element), out = b.buffer("out", 1, t.element);
  const auto row = [&](BufferId page) {
    return Block{
        .steps = {item_x(1)},
        .indirect = IndirectTile{.index = page, .tile_stride = blocks, .high = static_cast<int64_t>(table_rows) - 1}};
  };
  b.load("gather_state", state, row(gather), in);
  GenericStage more = b.compute("more", flat(tw));
  const Expr value = more.read(in, at(0));
  more.write(out, value + Expr(1.0));
  b.store("scatter_state", out, state, row(scatter));
  return std::move(b).finish(
      {.name = "row_update", .items = row_items(blocks, 1), .claim = approx("add"), .plan = tile_row_plan(blocks, 1)});
}

Result<Program> state_chunks(const Target& target, uint64_t items, uint64_t chunks) {
  TW_TRY(const Types t, types_of(target));
  const uint64_t tr = target.tile.rows, tw = target.tile.cols;
  Builder b(target, t.accumulator);
  const TensorId state = b.tensor("state", TensorRole::State, (items * chunks + 1) * tr, tw, t.element, GivenInit{});
  const TensorId x = b.tensor("x", TensorRole::Input, items * chunks * tr, tw, t.element, GivenInit{});
  const BufferId in_state = b.buffer("in_state", 1, t.element), in_x = b.buffer("in_x", 1, t.element);
  const BufferId out = b.buffer("out", 1, t.element);
  b.load("load_state", state, {.steps = {item_y(chunks), sub_h(1)}}, in_state);
  b.load("load_x", x, {.steps = {item_y(chunks), sub_h(1)}}, in_x);
  add_pages(b, "add", in_state, in_x, out);
  b.store("store_state", out, state, {.steps = {item_y(chunks), sub_h(1)}});
  std::vector<WorkItem> work;
  for (uint64_t i = 0; i < items; ++i) work.push_back({i, 0, {i * chunks, 0, chunks, 1}});
  return std::move(b).finish(
      {.name = "state_chunks", .items = work, .claim = approx("add"), .plan = chunked_plan(chunks, items)});
}

Result<Program> scattered_rows(const Target& target, uint64_t items) {
  TW_TRY(const Types t, types_of(target));
  TW_TRY(const Precision integer, index_precision(target, items, "state"));
  const uint64_t tw = target.tile.cols;
  Builder b(target, t.accumulator);
  const TensorId state = b.tensor("state", TensorRole::State, 1, items * tw, t.element, GivenInit{});
  const TensorId x = b.tensor("x", TensorRole::Input, 1, items * tw, t.element, GivenInit{});
  std::vector<int64_t> order(items);
  for (uint64_t k = 0; k < items; ++k) order[k] = static_cast<int64_t>(items - 1 - k);
  const TensorId table = b.scalar_table("order", integer, order);
  const BufferId in = b.buffer("in_x", 1, t.element), out = b.buffer("out", 1, t.element);
  const BufferId row = b.buffer("row", 1, integer, 1);
  b.load("load_x", x, {.steps = {item_x(1)}}, in);
  b.load("load_row", table, {.steps = {item_x(1)}}, row);
  GenericStage copy = b.compute("copy", flat(tw));
  const Expr value = copy.read(in, at(0));
  copy.write(out, value);
  b.store("store_state", out, state, {.indirect = IndirectTile{.index = row, .high = static_cast<int64_t>(items) - 1}});
  return std::move(b).finish({.name = "scattered_rows", .items = row_items(items, 1), .claim = exact()});
}

Result<Program> two_results(const Target& target, uint64_t n) {
  TW_TRY(const Types t, types_of(target));
  const uint64_t tiles = target.tiles(n), tw = target.tile.cols;
  Builder b(target, t.accumulator);
  const TensorId a = b.tensor("a", TensorRole::Input, 1, n, t.element, GivenInit{});
  const TensorId other = b.tensor("b", TensorRole::Input, 1, n, t.element, GivenInit{});
  const TensorId sum = b.tensor("sum", TensorRole::Output, 1, n, t.element);
  const TensorId product = b.tensor("product", TensorRole::Output, 1, n, t.element);
  const BufferId in_a = b.buffer("in_a", 1, t.element), in_b = b.buffer("in_b", 1, t.element);
  const BufferId out_sum = b.buffer("out_sum", 1, t.element), out_product = b.buffer("out_product", 1, t.element);
  b.load("load_a", a, {.steps = {item_x(1)}}, in_a);
  b.load("load_b", other, {.steps = {item_x(1)}}, in_b);
  GenericStage add = b.compute("add", flat(tw));
  const Expr al = add.read(in_a, at(0)), ar = add.read(in_b, at(0));
  add.write(out_sum, al + ar);
  GenericStage multiply = b.compute("multiply", flat(tw));
  const Expr ml = multiply.read(in_a, at(0)), mr = multiply.read(in_b, at(0));
  multiply.write(out_product, ml * mr);
  b.store("store_sum", out_sum, sum, {.steps = {item_x(1)}});
  b.store("store_product", out_product, product, {.steps = {item_x(1)}});
  return std::move(b).finish({.name = "two_results", .items = row_items(tiles, 1), .claim = approx("both")});
}

Result<Program> join(const Target& target, uint64_t n) {
  TW_TRY(const Types t, types_of(target));
  const auto width = static_cast<int64_t>(n);
  Builder b(target, t.accumulator);
  const TensorId a = b.tensor("a", TensorRole::Input, 1, n, t.element, GivenInit{});
  const TensorId other = b.tensor("b", TensorRole::Input, 1, n, t.element, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, 1, 2 * n, t.element);
  const BufferId in_a = b.buffer("in_a", target.tiles(n), t.element),
                 in_b = b.buffer("in_b", target.tiles(n), t.element);
  const BufferId out = b.buffer("out", target.tiles(2 * n), t.element);
  b.load("load_a", a, {}, in_a);
  b.load("load_b", other, {}, in_b);
  GenericStage both = b.compute("join", flat(2 * n));
  const std::vector<Band> bands{{width, both.read(in_a, at(0))}, {2 * width, both.read(in_b, at(-width))}};
  both.write(out, banded(bands));
  b.store("store_y", out, y, {});
  return std::move(b).finish({.name = "join", .items = one_item(target.tiles(2 * n)), .claim = exact()});
}

Result<Program> element_gather(const Target& target, uint64_t table_rows, uint64_t table_cols) {
  TW_TRY(const Types t, types_of(target));
  const uint64_t n = table_rows * table_cols;
  TW_TRY(const Precision integer, index_precision(target, n, "y"));
  Builder b(target, t.accumulator);
  const TensorId table = b.tensor("table", TensorRole::Input, 1, n, t.element, GivenInit{});
  const TensorId i = b.tensor("i", TensorRole::Input, 1, 1, integer, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, 1, table_cols, t.element);
  const BufferId in_table = b.buffer("in_table", target.tiles(n), t.element), in_i = b.buffer("in_i", 1, integer, 1);
  const BufferId biased = b.scratch("biased", 1, integer, 1), row = b.scratch("row", 1, integer, 1);
  const BufferId offset = b.scratch("offset", 1, integer, 1);
  const BufferId out = b.buffer("out", target.tiles(table_cols), t.element);
  b.load("load_table", table, {}, in_table);
  b.load("load_i", i, {}, in_i);
  GenericStage minus = b.compute("row_biased", flat(1));
  const Expr one_based = minus.read(in_i, fixed(0));
  minus.write(biased, one_based - Expr(1.0));
  GenericStage guard = b.compute("row_guarded", flat(1));
  const Expr checked = guard.guarded(biased, table_rows);
  guard.write(row, checked);
  GenericStage times = b.compute("row_offset", flat(1));
  const Expr zero_based_row = times.read(row, fixed(0));
  times.write(offset, zero_based_row * Expr(static_cast<double>(table_cols)));
  GenericStage gather = b.compute("gather", flat(table_cols));
  const uint32_t by = gather.operand(offset, fixed(0));
  const Expr value = gather.read(in_table, at(0).plus(by, 1, n));
  gather.write(out, value);
  b.store("store_y", out, y, {});
  return std::move(b).finish(
      {.name = "element_gather", .items = one_item(target.tiles(table_cols)), .claim = approx("row gather")});
}

Result<Program> checked_fold(const Target& target, uint64_t blocks) {
  TW_TRY(const Types t, types_of(target));
  TW_TRY(const Precision integer, integer_element(target, "sum"));
  const uint64_t width = target.tile.cols;
  Builder b(target, t.accumulator);
  const TensorId x = b.tensor("x", TensorRole::Input, 1, blocks * width, t.element, GivenInit{});
  const TensorId count = b.tensor("count", TensorRole::Input, 1, 1, integer, GivenInit{});
  const TensorId sum = b.tensor("sum", TensorRole::Output, 1, 1, t.element);
  const BufferId in_count = b.buffer("in_count", 1, integer, 1);
  const BufferId biased = b.scratch("biased", 1, integer, 1), checked = b.scratch("checked", 1, integer, 1);
  const BufferId in_x = b.buffer("in_x", 1, t.element), out = b.buffer("out", 1, t.element, 1);
  const BufferId run = b.scratch("run", 1, 2);
  b.level(FoldLevel::Prologue);
  b.load("load_count", count, {}, in_count);
  GenericStage minus = b.compute("count_biased", flat(1));
  const Expr given = minus.read(in_count, fixed(0));
  minus.write(biased, given - Expr(1.0));
  GenericStage guard = b.compute("count_checked", flat(1));
  const Expr elements = guard.guarded(biased, blocks * width);
  guard.write(checked, elements);
  b.compute("init", flat(1)).write(run, 0.0);
  b.level(FoldLevel::Body);
  b.load("load_x", x, {.steps = {k_block(1)}}, in_x);
  GenericStage fold = b.compute("fold", flat(1));
  const Expr old = fold.read(run, fixed(0)), more = fold.read(in_x, fixed(0));
  const uint32_t some = fold.operand(checked, fixed(0));
  fold.write(run, select(less_than_operand(Axis::Col, some), old + more, old));
  b.level(FoldLevel::Epilogue);
  GenericStage last = b.compute("last", flat(1));
  const Expr total = last.read(run, fixed(0));
  last.write(out, total);
  b.store("store_sum", out, sum, {});
  Section section{.name = "checked_fold", .items = one_item(1), .claim = approx("sum")};
  section.plan = BlockPlan{.num_blocks = blocks};
  section.k_tiles = blocks;
  section.trip = Trip{.tensor = count, .low = 1, .high = static_cast<int64_t>(blocks * width), .per = width};
  return std::move(b).finish(std::move(section));
}

Result<Program> many_adds(const Target& target, uint64_t copies, uint64_t tiles) {
  TW_TRY(const Types t, types_of(target));
  const uint64_t tw = target.tile.cols;
  Builder b(target, t.accumulator);
  for (uint64_t c = 0; c < copies; ++c) {
    const auto named = [c](std::string_view name) { return fmt::format("{}_{}", name, c); };
    const TensorId x = b.tensor(named("x"), TensorRole::Input, 1, tiles * tw, t.element, GivenInit{});
    const TensorId row = b.tensor(named("row"), TensorRole::Param, 1, tw, t.element, GivenInit{});
    const TensorId y = b.tensor(named("y"), TensorRole::Output, 1, tiles * tw, t.element);
    const BufferId in_x = b.buffer(named("in_x"), 1, t.element), in_row = b.buffer(named("in_row"), 1, t.element);
    const BufferId out = b.buffer(named("out"), 1, t.element);
    b.load(named("load_x"), x, {.steps = {item_x(1)}}, in_x);
    b.load(named("load_row"), row, {}, in_row);
    GenericStage add = b.compute(named("add"), flat(tw));
    const Expr left = add.read(in_x, at(0)), right = add.read(in_row, at(0));
    add.write(out, left + right);
    b.store(named("store_y"), out, y, {.steps = {item_x(1)}});
  }
  return std::move(b).finish({.name = "many_adds", .items = row_items(tiles, 1), .claim = approx("add")});
}

}  // namespace tw::spatial::testing
