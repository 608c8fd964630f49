#include "spatial/lower/pointwise.h"

#include <fmt/format.h>

#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"

namespace tw::spatial::lower {
namespace {

NumericsClaim claim_of(const UnaryMap& map, Precision precision) {
  return claim(is_integer(precision) && integral(map.body), map.name, precision);
}

// Both forms of one tile an item: extents and items are what differs.
struct Tiling {
  uint64_t rows = 1;
  uint64_t cols = 1;
  std::vector<Step> steps;
  std::vector<WorkItem> items;
  std::vector<Iter> space;
  std::string name;
};

Result<Program> tiled(const UnaryMap& map, const OpView& op, Tiling tiling) {
  TW_TRY(const Precision precision, element_of(op, op[0]));
  TW_TRY(const Precision accumulator, accumulator_for(op.target, precision, op.subject()));
  const OpTensor& x = op[0];
  const Precision result = op.result.stored(precision);
  Builder b(op.target, accumulator);
  const TensorId in = b.tensor(x.name, x.read_role(), tiling.rows, tiling.cols, precision, init_of(x.fill, x.size()));
  const TensorId out = b.tensor(op.result.name, TensorRole::Output, tiling.rows, tiling.cols, result);
  const BufferId in_x = b.buffer("in_x", 1, precision), page = b.buffer("out", 1, result);
  b.load("load_x", in, {.steps = tiling.steps}, in_x);
  GenericStage stage = b.compute(map.name, tiling.space);
  stage.operand(in_x, ident(b.width(in_x)));
  stage.write(page, map.body);
  b.store("store_" + op.result.name, page, out, {.steps = tiling.steps});
  return std::move(b).finish(
      {.name = std::move(tiling.name), .items = std::move(tiling.items), .claim = claim_of(map, precision)});
}

Expr gelu(const Expr& x) {
  // sqrt(2 / pi) (x + 0.044715 x^3), and x / (1 + e^(-2z)): the tanh form with one exponential, exact in both tails.
  const Expr z = 0.7978845608028654 * (x + 0.044715 * (x * (x * x)));
  return x * recip(1.0 + exp(0.0 - 2.0 * z));
}

Expr softplus(const Expr& x) { return max(x, 0.0) + ln(1.0 + exp(0.0 - max(x, 0.0 - x))); }

UnaryMap activation(graph::ActivationKind kind) {
  const Expr x = arg(0);
  switch (kind) {
    case graph::ActivationKind::Silu: return {"silu", silu(x)};
    case graph::ActivationKind::Sigmoid: return {"sigmoid", sigmoid(x)};
    case graph::ActivationKind::GeluTanh: return {"gelu", gelu(x)};
    case graph::ActivationKind::Relu: return {"relu", max(x, 0.0)};
    case graph::ActivationKind::Softplus: return {"softplus", softplus(x)};
    case graph::ActivationKind::Tanh: return {"tanh", soft_cap(x, 1.0)};
    case graph::ActivationKind::Exp: return {"exp", exp(x)};
  }
  return {};
}

}  // namespace

Result<Program> unary_row(const UnaryMap& map, const OpView& op) {
  TW_TRY(const Precision precision, element_of(op, op[0]));
  TW_TRY(FlatBuild build, FlatBuild::open(op, precision));
  const uint64_t n = op[0].size();
  const BufferId x = build.input(op[0]);
  const BufferId out = build.result_page(n);
  GenericStage stage = build.builder().compute(map.name, flat(n));
  stage.operand(x, at(0));
  stage.write(out, map.body);
  return std::move(build).finish(fmt::format("{}_{}", map.name, n), claim_of(map, precision));
}

Result<Program> unary_blocked(const UnaryMap& map, const OpView& op) {
  const uint64_t n = op[0].size(), tiles = op.target.tiles(n);
  return tiled(map, op,
               {.cols = n,
                .steps = {item_x(1)},
                .items = row_items(tiles, 1),
                .space = flat(op.target.tile.cols),
                .name = fmt::format("{}_{}", map.name, n)});
}

Result<Program> unary_matrix(const UnaryMap& map, const OpView& op) {
  const auto [rows_t, cols_t] = grid_of({.rows = op[0].rows, .cols = op[0].cols}, op.target.tile);
  return tiled(map, op,
               {.rows = op[0].rows,
                .cols = op[0].cols,
                .steps = tile_grid_steps(rows_t, cols_t),
                .items = grid_items(rows_t, cols_t),
                .space = {rows(op.target.tile.rows), cols(op.target.tile.cols)},
                .name = fmt::format("{}_{}x{}", map.name, op[0].rows, op[0].cols)});
}

Result<Lowered> lower_unary(const UnaryMap& map, const OpView& op) {
  const OpTensor& x = op[0];
  if (x.rows > 1) {
    TW_TRY(Program section, unary_matrix(map, op));
    return Lowered{{std::move(section)}, "matrix", fmt::format("{} rows", x.rows)};
  }
  const uint64_t tiles = op.target.tiles(x.size());
  if (op.target.wide(x.size())) {
    TW_TRY(Program section, unary_blocked(map, op));
    return Lowered{{std::move(section)}, "blocked", over_a_page(op.target, tiles)};
  }
  TW_TRY(Program section, unary_row(map, op));
  return Lowered{{std::move(section)}, "whole row", within_a_page(op.target, tiles)};
}

Result<Lowered> lower(const graph::Scale& op, const OpView& view) {
  return lower_unary({"scale", arg(0) * static_cast<double>(op.factor)}, view);
}

Result<Lowered> lower(const graph::Activate& op, const OpView& view) { return lower_unary(activation(op.kind), view); }

Result<Lowered> lower(const graph::Softcap& op, const OpView& view) {
  return lower_unary({"softcap", soft_cap(arg(0), static_cast<double>(op.cap))}, view);
}

Result<Lowered> lower(const graph::IntRequant& op, const OpView& view) {
  return lower_unary({"int_requant", shr(arg(0) * static_cast<double>(op.multiplier), op.shift)}, view);
}

Result<Lowered> lower(const graph::IntClamp& op, const OpView& view) {
  return lower_unary({"int_clamp", min(max(arg(0), static_cast<double>(op.low)), static_cast<double>(op.high))}, view);
}

}  // namespace tw::spatial::lower
