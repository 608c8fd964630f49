#include <fmt/format.h>

#include "spatial/eps.h"
#include "spatial/lower/block_choice.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/norm.h"
#include "spatial/lower/row_chain.h"
#include "spatial/lower/unit_section.h"

namespace tw::spatial::lower {
namespace {

Norm with_operands(Norm norm, const OpView& op, uint32_t width) {
  norm.width = width == 0 ? op[0].cols : width;
  if (op.has(1)) norm.weight = op[1];
  if (op.has(2)) norm.residual = op[2];
  if (op.has(3)) norm.bias = op[3];
  return norm;
}

Result<Precision> precision_of(const OpView& op) {
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  return op.result.stored(element);
}

NumericsClaim norm_claim(const Norm& norm, Precision precision) { return claim(false, norm.what, precision); }

// What is left to be scaled, and the scale of each row.
struct Scaled {
  RowView values;
  BufferId scale{};
};
Scaled scale_rows(RowChain& chain, const Norm& norm, RowView x, std::optional<RowView> residual) {
  RowView v = x;
  if (residual) v = chain.values("add_residual", "xr", {x, *residual}, {}, arg(0) + arg(1));
  if (norm.centred) {
    const BufferId total = chain.fold("total_rows", "row_total", v, Pool::Sum);
    const double part = 1.0 / static_cast<double>(norm.width);
    const BufferId mean = chain.number("row_mean", "row_mean", {total}, arg(0) * part);
    v = chain.values("centre", "centred", {v}, {mean}, arg(0) - arg(1));
  }
  const RowView squares = chain.values("square", "xsq", {v}, {}, arg(0) * arg(0));
  const BufferId sum = chain.fold("reduce_rows", "row_sum", squares, Pool::Sum);
  return {v, chain.number("row_xform", "row_scale", {sum}, rsqrt(arg(0), norm.eps_nano, norm.over))};
}

// v * scale * weight + bias of arg(first), ...
Expr rescaled(const Norm& norm, Expr value, const Expr& scale, const std::optional<Expr>& weight,
              const std::optional<Expr>& bias) {
  Expr body = std::move(value) * scale;
  if (norm.weight) body = body * *weight;
  if (norm.bias) body = body + *bias;
  return body;
}

Result<Program> build_units(const Norm& norm, const OpView& op, const UnitGrid& grid, std::string name,
                            uint32_t pages) {
  TW_TRY(const Precision precision, precision_of(op));
  TW_TRY(UnitSection section, UnitSection::open(op, grid, precision));
  Builder& b = section.builder();
  const Block unit{.steps = {item_x(grid.tiles)}};
  const auto view = [&](BufferId page) { return RowView{page, 0, b.width(page)}; };
  const RowView x = view(section.load_units(op[0], "x", grid.tiles, unit, pages));
  std::optional<RowView> residual;
  if (norm.residual) residual = view(section.load_units(*norm.residual, "residual", grid.tiles, unit, pages));
  RowChain chain(b, {.rows = grid.parallel, .suffix = {}, .depth = pages}, grid.width,
                 section.load_ones(op.result.name));
  const Scaled scaled = scale_rows(chain, norm, x, residual);

  const BufferId out = b.buffer("out", grid.tiles, precision, pages);
  std::optional<Expr> weight, bias;
  const auto row = [&](const std::optional<OpTensor>& tensor, const std::string& what) {
    return tensor ? std::optional(section.load_row(*tensor, what, grid.tiles, {}, pages)) : std::nullopt;
  };
  const std::optional<BufferId> in_weight = row(norm.weight, "weight"), in_bias = row(norm.bias, "bias");
  GenericStage stage = b.compute("rescale", section.space(grid.width));
  const Expr value = stage.read(scaled.values.page, scaled.values.map());
  const Expr scale = stage.read(scaled.scale, row_of(op.target.tile.cols));
  if (in_weight) weight = stage.read(*in_weight, col());
  if (in_bias) bias = stage.read(*in_bias, col());
  stage.write(out, rescaled(norm, value, scale, weight, bias));
  const TensorId result = b.tensor(op.result.name, TensorRole::Output, grid.rows, grid.cols, precision);
  b.store("store_" + op.result.name, out, result, unit);
  Section made{.name = std::move(name), .items = {}, .claim = norm_claim(norm, precision)};
  for (uint64_t i = 0; i < grid.count; ++i) made.items.push_back({0, i, grid.rect(i, 0, grid.tiles)});
  made.plan = tile_row_plan(grid.tiles, grid.tiles, grid.count);
  return std::move(b).finish(std::move(made));
}

}  // namespace

Result<Norm> norm_of(const graph::RowNorm& spec, const OpView& op) {
  TW_TRY(const uint64_t eps, eps_nano(spec.eps, op.subject()));
  const bool layer = spec.kind == graph::NormKind::Layer;
  Norm norm{.name = layer ? "layernorm" : "rmsnorm", .what = "row reduction", .centred = layer, .eps_nano = eps};
  norm = with_operands(std::move(norm), op, spec.width);
  norm.over = norm.width;
  return norm;
}

Result<Norm> norm_of(const graph::L2Norm& spec, const OpView& op) {
  TW_TRY(const uint64_t eps, eps_nano(spec.eps, op.subject()));
  return with_operands({.name = "l2norm", .what = "per-head l2 normalization", .eps_nano = eps}, op, spec.width);
}

Result<Program> norm_flat(const Norm& norm, const OpView& op) {
  TW_TRY(const Precision precision, precision_of(op));
  TW_TRY(FlatBuild build, FlatBuild::open(op, precision));
  const uint64_t n = op[0].size(), units = n / norm.width;
  const auto width = static_cast<int64_t>(norm.width);
  const BufferId x = build.input(op[0]);
  std::optional<BufferId> residual, weight, bias;
  if (norm.residual) residual = build.input(*norm.residual);
  if (norm.weight) weight = build.input(*norm.weight);
  if (norm.bias) bias = build.input(*norm.bias);
  const BufferId ones = build.ones(fmt::format("{}__ones_{}", op.result.name, name(precision)));

  std::vector<std::pair<RowGroup, Scaled>> groups;
  for (const RowGroup& group : row_groups(units, op.target)) {
    RowChain chain(build.builder(), group, norm.width, ones);
    const int64_t base = static_cast<int64_t>(group.first) * width;
    std::optional<RowView> more;
    if (residual) more = RowView{*residual, base, width};
    groups.emplace_back(group, scale_rows(chain, norm, {x, base, width}, more));
  }

  const BufferId out = build.result_page(n);
  GenericStage stage = build.builder().compute("rescale", flat(n));
  std::vector<Band> bands;
  for (const auto& [group, scaled] : groups)
    for (uint64_t r = 0; r < group.rows; ++r) {
      const uint64_t first = (group.first + r) * norm.width;
      const Expr value = stage.read(scaled.values.page, scaled.values.in_band(r, first));
      const Expr scale = stage.read(scaled.scale, fixed(static_cast<int64_t>(r * op.target.tile.cols)));
      std::optional<Expr> w, b;
      if (weight) w = stage.read(*weight, at(-static_cast<int64_t>(first)));
      if (bias) b = stage.read(*bias, at(-static_cast<int64_t>(first)));
      bands.push_back({static_cast<int64_t>(first + norm.width), rescaled(norm, value, scale, w, b)});
    }
  stage.write(out, banded(bands));
  return std::move(build).finish(fmt::format("{}_flat_{}x{}", norm.name, units, norm.width),
                                 norm_claim(norm, precision));
}

Result<Program> norm_heads(const Norm& norm, const OpView& op) {
  const UnitGrid grid = UnitGrid::flat(op[0], norm.width, op.target);
  return within(paged(op.target,
                      [&](uint32_t pages) {
                        return build_units(norm, op, grid,
                                           fmt::format("{}_heads_{}x{}", norm.name, grid.across, norm.width), pages);
                      }),
                op.target);
}

Result<Program> norm_rows(const Norm& norm, const OpView& op) {
  const UnitGrid grid = UnitGrid::dense(op[0], norm.width, op.target);
  return within(paged(op.target,
                      [&](uint32_t pages) {
                        return build_units(norm, op, grid, fmt::format("{}_rows_{}", norm.name, grid.text()), pages);
                      }),
                op.target);
}

}  // namespace tw::spatial::lower
