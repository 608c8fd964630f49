#include "spatial/lower/softmax.h"

#include <fmt/format.h>

#include "base/check.h"
#include "spatial/lower/block_choice.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/row_chain.h"
#include "spatial/lower/unit_section.h"

namespace tw::spatial::lower {
namespace {

NumericsClaim softmax_claim(Precision precision) { return claim(false, "row softmax", precision); }
std::string ones_name(const OpView& op, Precision precision) {
  return fmt::format("{}__ones_{}", op.result.name, name(precision));
}

// e^(x - max) of each row, and the reciprocal of its sum. `sink` is read as a number of each row.
struct Weights {
  RowView values;
  BufferId inverse{};
};
Weights weigh(RowChain& chain, RowView x, const std::optional<std::pair<BufferId, ElemAccess>>& sink) {
  BufferId most = chain.fold("row_max", "row_max", x, Pool::Max);
  if (sink) most = chain.number("row_max_sink", "row_max_sink", {most}, max(arg(0), arg(1)), {*sink});
  const RowView values = chain.values("exp_centred", "expx", {x}, {most}, exp(arg(0) - arg(1)));
  BufferId sum = chain.fold("row_sum", "row_sum", values, Pool::Sum);
  if (sink) sum = chain.number("row_sum_sink", "row_sum_sink", {sum, most}, arg(0) + exp(arg(2) - arg(1)), {*sink});
  return {values, chain.number("recip", "row_inv", {sum}, recip(arg(0)))};
}

Result<Program> build_rows(const OpView& op, Precision precision, uint32_t pages) {
  const UnitGrid grid = UnitGrid::dense(op[0], op[0].cols, op.target);
  TW_TRY(UnitSection section, UnitSection::open(op, grid, precision));
  Builder& b = section.builder();
  const Block unit{.steps = {item_x(grid.tiles)}};
  const BufferId x = section.load_units(op[0], "x", grid.tiles, unit, pages);
  std::optional<std::pair<BufferId, ElemAccess>> sink;
  if (op.has(1)) {
    const bool each = op[1].rows > 1;
    const BufferId page = section.load_row(op[1], "sinks", 1, each ? Block{.steps = {item_x(1)}} : Block{}, pages);
    sink.emplace(page, each ? row_of(op.target.tile.cols) : fixed(0));
  }
  RowChain chain(b, {.rows = grid.parallel, .suffix = {}, .depth = pages}, grid.width,
                 section.load_ones(op.result.name));
  const Weights weights = weigh(chain, {x, 0, b.width(x)}, sink);
  const Precision result = op.result.stored(precision);
  const BufferId out = b.buffer("out", grid.tiles, result, pages);
  GenericStage scale = b.compute("scale", section.space(grid.width));
  const Expr value = scale.read(weights.values.page, weights.values.map());
  const Expr inverse = scale.read(weights.inverse, row_of(op.target.tile.cols));
  scale.write(out, value * inverse);
  b.store("store_" + op.result.name, out, b.tensor(op.result.name, TensorRole::Output, grid.rows, grid.cols, result),
          unit);
  Section made{.name = fmt::format("softmax_rows_{}", grid.text()), .items = {}, .claim = softmax_claim(precision)};
  for (uint64_t i = 0; i < grid.count; ++i) made.items.push_back({0, i, grid.rect(i, 0, grid.tiles)});
  made.plan = tile_row_plan(grid.tiles, grid.tiles, grid.count);
  return std::move(b).finish(std::move(made));
}

}  // namespace

Result<Program> softmax_section(const OpView& op, Precision precision) {
  TW_TRY(FlatBuild build, FlatBuild::open(op, precision));
  const uint64_t count = op[0].rows, width = op[0].cols;
  const BufferId x = build.input(op[0]);
  std::optional<BufferId> sinks;
  if (op.has(1)) sinks = build.input(op[1]);
  const BufferId ones = build.ones(ones_name(op, precision));

  std::vector<std::pair<RowGroup, Weights>> groups;
  for (const RowGroup& group : row_groups(count, op.target)) {
    const auto first = static_cast<int64_t>(group.first), step = static_cast<int64_t>(width);
    RowChain chain(build.builder(), group, width, ones);
    std::optional<std::pair<BufferId, ElemAccess>> sink;
    if (sinks) sink.emplace(*sinks, op[1].rows > 1 ? map3(first, 1, 0) : fixed(0));
    groups.emplace_back(group, weigh(chain, {x, first * step, step}, sink));
  }

  const BufferId out = build.result_page(op[0].size());
  GenericStage scale = build.builder().compute("scale", flat(op[0].size()));
  std::vector<Band> bands;
  for (const auto& [group, weights] : groups)
    for (uint64_t r = 0; r < group.rows; ++r) {
      const uint64_t first = (group.first + r) * width;
      const Expr value = scale.read(weights.values.page, weights.values.in_band(r, first));
      const Expr inverse = scale.read(weights.inverse, fixed(static_cast<int64_t>(r * op.target.tile.cols)));
      bands.push_back({static_cast<int64_t>(first + width), value * inverse});
    }
  scale.write(out, banded(bands));
  return std::move(build).finish(fmt::format("softmax_flat_{}x{}", count, width), softmax_claim(precision));
}

Result<Program> softmax_rows(const OpView& op, Precision precision) {
  return within(paged(op.target, [&](uint32_t pages) { return build_rows(op, precision, pages); }), op.target);
}

Result<std::vector<Program>> softmax_streamed(const OpView& op, Precision precision, bool dense) {
  const OpTensor* sink = op.has(1) ? &op[1] : nullptr;
  TW_CHECK(dense || !sink || sink->rows == 1, "{} sinks of flat rows", sink->rows);
  OpView view = op;
  view.result.dtype = op.result.stored(precision);
  view.operands[0]->dtype = op[0].stored(precision);
  if (sink) view.operands[1]->dtype = sink->stored(precision);
  if (sink) sink = &view[1];
  const UnitGrid grid =
      dense ? UnitGrid::dense(op[0], op[0].cols, op.target) : UnitGrid::flat(op[0], op[0].cols, op.target);
  const std::string most = op.result.name + "__max", inverse = op.result.name + "__inverse";
  const auto program = [&](std::string_view part) { return fmt::format("softmax_{}_{}", part, grid.text()); };
  std::vector<Program> sections;
  const auto add = [&](Result<Program> section) -> Result<void> {
    if (!section) return section.refusal();
    sections.push_back(std::move(*section));
    return {};
  };
  const Expr weight = exp(arg(0) - arg(1));
  TW_TRY_VOID(add(unit_fold(view, grid,
                            {.program = program("max"),
                             .result = most,
                             .values = {&view[0]},
                             .numbers = {},
                             .term = arg(0),
                             .pool = Pool::Max,
                             .zero_is_neutral = false,
                             .finish = sink ? max(arg(0), arg(1)) : arg(0),
                             .sink = sink})));
  TW_TRY_VOID(add(unit_fold(view, grid,
                            {.program = program("sum"),
                             .result = inverse,
                             .values = {&view[0]},
                             .numbers = {most},
                             .term = weight,
                             .zero_is_neutral = false,
                             .finish = recip(sink ? arg(0) + exp(arg(2) - arg(1)) : arg(0)),
                             .sink = sink})));
  TW_TRY_VOID(add(unit_map(view, grid,
                           {.program = program("scale"),
                            .what = "row softmax",
                            .values = {&view[0]},
                            .numbers = {most, inverse},
                            .shared = {},
                            .body = weight * arg(2)})));
  return sections;
}

Result<Lowered> lower(const graph::Softmax&, const OpView& view) {
  const Target& target = view.target;
  TW_TRY(const Precision precision, real_element(target, view.subject()));
  const OpTensor& x = view[0];
  if (x.rows == 1 && !target.wide(x.cols)) {
    TW_TRY(Program section, softmax_section(view, precision));
    return Lowered{{std::move(section)}, "flat", within_a_page(target, target.tiles(x.cols))};
  }
  if (!target.wide(x.cols)) {
    TW_TRY(Program section, softmax_rows(view, precision));
    return Lowered{{std::move(section)},
                   "rows",
                   fmt::format("{} rows; of a row {}", x.rows, within_a_page(target, target.tiles(x.cols)))};
  }
  TW_TRY(std::vector<Program> sections, softmax_streamed(view, precision, x.rows > 1));
  return Lowered{std::move(sections), x.rows > 1 ? "streamed rows" : "streamed",
                 "of a row " + over_a_page(target, target.tiles(x.cols))};
}

}  // namespace tw::spatial::lower
