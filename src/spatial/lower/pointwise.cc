#include "spatial/lower/pointwise.h"

#include <fmt/format.h>

#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/tile_map.h"

namespace tw::spatial::lower {
namespace {

NumericsClaim map_claim(const UnaryMap& map, Precision precision) {
  return claim(is_integer(precision) && integral(map.body), map.name, precision);
}

Expr gelu(const Expr& x) {
  // sqrt(2 / pi) (x + 0.044715 x^3), and x / (1 + e^(-2z)): the tanh form with one exponential, exact in both tails.
  const Expr z = 0.7978845608028654 * (x + 0.044715 * (x * (x * x)));
  return x * recip(1.0 + exp(0.0 - 2.0 * z));
}

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
  return std::move(build).finish(fmt::format("{}_{}", map.name, n), map_claim(map, precision));
}

Result<Program> unary_blocked(const UnaryMap& map, const OpView& op) {
  const uint64_t n = op[0].size();
  return tile_map({.stage = map.name,
                   .name = fmt::format("{}_{}", map.name, n),
                   .cols = n,
                   .operands = {{op[0], "x"}},
                   .body = map.body},
                  op);
}

Result<Program> unary_matrix(const UnaryMap& map, const OpView& op) {
  const OpTensor& x = op[0];
  return tile_map({.stage = map.name,
                   .name = fmt::format("{}_{}x{}", map.name, x.rows, x.cols),
                   .rows = x.rows,
                   .cols = x.cols,
                   .operands = {{x, "x"}},
                   .body = map.body},
                  op);
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
