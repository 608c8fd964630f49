#include "spatial/lower/flash_grouped.h"

#include <fmt/format.h>

#include <functional>

#include "spatial/lower/attention_parts.h"
#include "spatial/lower/flash.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// The flat query row as a tile row for each key head: query heads g * x to g * x + g - 1 are rows 0 to g - 1, the
// others zero.
Result<Program> regroup(const AttentionShape& shape, const OpView& op, const OpTensor& grouped, uint32_t pages) {
  const Precision dtype = *grouped.dtype;
  TW_TRY(const Precision accumulator, accumulator_for(op.target, dtype, op.subject()));
  const uint64_t tiles = op.target.tiles(shape.key_width), tile = op.target.tile.rows;
  Builder b(op.target, accumulator);
  const TensorId query = declare_operand(b, op[kQuery], 1, shape.heads * shape.key_width, dtype);
  const TensorId result = b.tensor(grouped.name, TensorRole::Output, grouped.rows, grouped.cols, dtype);
  const BufferId heads = b.buffer("in_heads", shape.group() * tiles, dtype, pages);
  const BufferId out = b.buffer("out", tiles, dtype, pages);
  b.load("load_heads", query, {.steps = {item_y(shape.group() * tiles)}}, heads);
  GenericStage stage = b.compute("regroup", {rows(tile), cols(shape.key_width)});
  const Expr value = stage.read(heads, map3(0, as_int(shape.key_width), 1));
  stage.write(out, select(less(Axis::Row, as_int(shape.group())), value, 0.0));
  b.store("store_groups", out, result, {.steps = {item_y(tiles)}});
  std::vector<WorkItem> items;
  for (uint64_t x = 0; x < shape.kv_heads; ++x) items.push_back({x, 0, TileRect{x, 0, 1, tiles}});
  return std::move(b).finish({.name = fmt::format("{}_gqa_groups_{}x{}", shape.tag, shape.kv_heads, shape.group()),
                              .items = std::move(items),
                              .claim = exact(),
                              .plan = BlockPlan{.per_site_n = tiles, .grid_m = shape.kv_heads, .block_n = tiles}});
}

// Rows 0 to g - 1 of each tile row, one after the other: as a plane, the first g * width elements of its page. Item
// (x, j) stores block j of them, from an offset that its tile of the table holds.
Result<Program> ungroup(const AttentionShape& shape, const OpView& op, const OpTensor& context, uint32_t pages) {
  const Precision dtype = *context.dtype;
  TW_TRY(const Precision accumulator, accumulator_for(op.target, dtype, op.subject()));
  const uint64_t tiles = op.target.tiles(shape.value_width), width = op.target.tile.cols;
  const uint64_t all = shape.group() * tiles, block = op.target.block_of(all), blocks = all / block;
  const uint64_t most = (blocks - 1) * block * width;
  TW_TRY(const Precision index, index_precision(op.target, most + 1, op.subject()));
  std::vector<int64_t> offsets;
  for (uint64_t j = 0; j < blocks; ++j) offsets.push_back(as_int(j * block * width));
  Builder b(op.target, accumulator);
  const TensorId groups = b.tensor(context.name, TensorRole::Input, context.rows, context.cols, dtype);
  const TensorId table = b.scalar_table(op.result.name + "__gqa_offsets", index, offsets);
  const TensorId result = b.tensor(op.result.name, TensorRole::Output, 1, shape.heads * shape.value_width, dtype);
  const BufferId in = b.buffer("in_groups", tiles, dtype, pages), at_page = b.buffer("in_offset", 1, index, 1);
  const BufferId out = b.buffer("out", block, dtype, pages);
  b.load("load_groups", groups, {.steps = {item_y(tiles)}}, in);
  b.load("load_offset", table, {.steps = {item_x(1)}}, at_page);
  GenericStage stage = b.compute("ungroup", flat(block * width));
  const uint32_t offset = stage.operand(at_page, fixed(0));
  const Expr value = stage.read(in, at(0).plus(offset, 1, most + 1));
  stage.write(out, value);
  b.store("store_" + op.result.name, out, result, {.steps = {item_y(all), item_x(block)}});
  return std::move(b).finish({.name = fmt::format("{}_gqa_heads_{}x{}", shape.tag, shape.kv_heads, shape.group()),
                              .items = grouped_items(shape.kv_heads, all, block),
                              .claim = exact()});
}

Result<Program> fitting(const OpView& op, const std::function<Result<Program>(uint32_t)>& build) {
  return about(within(paged(op.target, build), op.target), op.subject());
}

}  // namespace

bool grouped_applies(const AttentionShape& shape, const Target& target) {
  return shape.rows == 1 && shape.group() >= 2 && shape.group() <= target.tile.rows && target.tile.square() &&
         !target.wide(std::max(shape.key_width, shape.value_width));
}

Result<std::vector<Program>> grouped_attention(const AttentionShape& shape, const OpView& op) {
  TW_TRY_VOID(check_flash(shape, op));
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  const uint64_t tile = op.target.tile.rows, rows = shape.kv_heads * tile;
  const OpTensor query{
      .name = op.result.name + "__gqa_q", .rows = rows, .cols = shape.key_width, .dtype = op[kQuery].stored(element)};
  const OpTensor context{.name = op.result.name + "__gqa_ctx",
                         .rows = rows,
                         .cols = shape.value_width,
                         .dtype = op.result.stored(element)};
  FlashFold fold{op.target, shape, query, op[kKeys], op[kValues], {}, {}, context, true};
  if (shape.named()) fold.position = op[kPosition];

  std::vector<Program> sections;
  TW_TRY(sections.emplace_back(), fitting(op, [&](uint32_t pages) { return regroup(shape, op, query, pages); }));
  if (shape.sinks) {
    TW_TRY(sections.emplace_back(), flash_sinks(fold, op, shape.kv_heads, [&](uint64_t item, uint64_t row) {
             return row < shape.group() ? std::optional(item * shape.group() + row) : std::nullopt;
           }));
  }
  TW_TRY(sections.emplace_back(), fitting(op, [&](uint32_t pages) { return flash_fold(fold, pages); }));
  TW_TRY(sections.emplace_back(), fitting(op, [&](uint32_t pages) { return ungroup(shape, op, context, pages); }));
  return sections;
}

}  // namespace tw::spatial::lower
