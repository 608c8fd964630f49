#include "spatial/lower/elementwise.h"

#include <fmt/format.h>

#include "graph/names.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/tile_map.h"

namespace tw::spatial::lower {
namespace {

using graph::Arithmetic;

Expr combine(Arithmetic op, const Expr& a, const Expr& b, bool integers) {
  switch (op) {
    case Arithmetic::Add: return a + b;
    case Arithmetic::Sub: return a - b;
    case Arithmetic::Mul: return a * b;
    case Arithmetic::Div: return integers ? floor_div(a, b) : a * recip(b);
    case Arithmetic::Min: return min(a, b);
    case Arithmetic::Max: return max(a, b);
  }
  return a;
}

// The quotient of integers is no number where both operands are padding.
bool inside_only(Arithmetic op, Precision precision) { return op == Arithmetic::Div && is_integer(precision); }

std::string stage_name(Arithmetic op) { return fmt::format("elementwise_{}", enum_name(op)); }

Result<Program> elementwise_tiles(Arithmetic op, const OpView& view, uint64_t rows, uint64_t cols, std::string name) {
  TW_TRY(const Precision precision, element_of(view, view[0]));
  return tile_map({.stage = stage_name(op),
                   .name = std::move(name),
                   .rows = rows,
                   .cols = cols,
                   .operands = {{view[0], "a"}, {view[1], "b"}},
                   .body = combine(op, arg(0), arg(1), is_integer(precision)),
                   .inside_only = inside_only(op, precision)},
                  view);
}

// elementwise_add_row_3x5, elementwise_add_column_3x5: what is spread, over what.
std::string broadcast_name(const graph::RowBroadcast& op, const OpTensor& a) {
  return fmt::format("{}_{}_{}x{}", stage_name(op.op), op.scalar ? "column" : "row", a.rows, a.cols);
}

}  // namespace

Result<Program> elementwise_row(const graph::Elementwise& op, const OpView& view) {
  TW_TRY(const Precision precision, element_of(view, view[0]));
  TW_TRY(FlatBuild build, FlatBuild::open(view, precision));
  const uint64_t n = view[0].size();
  const BufferId a = build.input(view[0]), b = build.input(view[1]), out = build.result_page(n);
  GenericStage stage = build.builder().compute(stage_name(op.op), flat(n));
  const Expr left = stage.read(a, at(0)), right = stage.read(b, at(0));
  stage.write(out, combine(op.op, left, right, is_integer(precision)));
  return std::move(build).finish(fmt::format("{}_{}", stage_name(op.op), n),
                                 claim(is_integer(precision), stage_name(op.op), precision));
}

Result<Program> elementwise_blocked(const graph::Elementwise& op, const OpView& view) {
  const uint64_t n = view[0].size();
  return elementwise_tiles(op.op, view, 1, n, fmt::format("{}_{}", stage_name(op.op), n));
}

Result<Program> elementwise_matrix(const graph::Elementwise& op, const OpView& view) {
  const OpTensor& a = view[0];
  return elementwise_tiles(op.op, view, a.rows, a.cols, fmt::format("{}_{}x{}", stage_name(op.op), a.rows, a.cols));
}

Result<Program> row_broadcast_flat(const graph::RowBroadcast& op, const OpView& view) {
  const OpTensor& a = view[0];
  TW_TRY(const Precision precision, element_of(view, a));
  TW_TRY(FlatBuild build, FlatBuild::open(view, precision));
  const auto width = static_cast<int64_t>(a.cols);
  const BufferId in_a = build.input(a), in_b = build.input(view[1]);
  PointwiseStage stage(stage_name(op.op));
  const Expr left = stage.read(in_a, at(0));
  std::vector<Band> bands;
  for (int64_t r = 0; r < static_cast<int64_t>(a.rows); ++r) {
    const Expr right = stage.read(in_b, op.scalar ? fixed(r) : at(-r * width));
    bands.push_back({(r + 1) * width, combine(op.op, left, right, is_integer(precision))});
  }
  stage.body(banded(bands));
  return std::move(build).pointwise(std::move(stage), a.size(), broadcast_name(op, a),
                                    claim(is_integer(precision), stage_name(op.op), precision));
}

Result<Program> row_broadcast_tiles(const graph::RowBroadcast& op, const OpView& view) {
  const OpTensor& a = view[0];
  TW_TRY(const Precision precision, element_of(view, a));
  return tile_map({.stage = stage_name(op.op),
                   .name = broadcast_name(op, a) + "_tiled",
                   .rows = a.rows,
                   .cols = a.cols,
                   .operands = {{a, "a"}, {view[1], "b", op.scalar ? Spread::Across : Spread::Down}},
                   .body = combine(op.op, arg(0), arg(1), is_integer(precision)),
                   .inside_only = inside_only(op.op, precision)},
                  view);
}

Result<Lowered> lower(const graph::Elementwise& op, const OpView& view) {
  const OpTensor& a = view[0];
  if (a.rows > 1) {
    TW_TRY(Program section, elementwise_matrix(op, view));
    return Lowered{{std::move(section)}, "matrix", fmt::format("{} rows", a.rows)};
  }
  const uint64_t tiles = view.target.tiles(a.size());
  if (view.target.wide(a.size())) {
    TW_TRY(Program section, elementwise_blocked(op, view));
    return Lowered{{std::move(section)}, "blocked", over_a_page(view.target, tiles)};
  }
  TW_TRY(Program section, elementwise_row(op, view));
  return Lowered{{std::move(section)}, "whole row", within_a_page(view.target, tiles)};
}

Result<Lowered> lower(const graph::RowBroadcast& op, const OpView& view) {
  const OpTensor& a = view[0];
  const uint64_t tiles = view.target.tiles(a.size());
  if (view.target.wide(a.size())) {
    TW_TRY(Program section, row_broadcast_tiles(op, view));
    return Lowered{{std::move(section)}, a.rows > 1 ? "matrix" : "blocked", over_a_page(view.target, tiles)};
  }
  TW_TRY(Program section, row_broadcast_flat(op, view));
  return Lowered{{std::move(section)}, "flat", within_a_page(view.target, tiles)};
}

}  // namespace tw::spatial::lower
