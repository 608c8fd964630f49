#include "spatial/lower/decay.h"

#include <fmt/format.h>

#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/tile_map.h"

namespace tw::spatial::lower {
namespace {

Expr decay(const Expr& x, const Expr& bias, const Expr& rate) { return exp(rate * softplus(x + bias)); }

}  // namespace

Result<Program> decay_row(const OpView& op) {
  const OpTensor& x = op[0];
  TW_TRY(const Precision precision, element_of(op, x));
  TW_TRY(FlatBuild build, FlatBuild::open(op, precision));
  const uint64_t n = x.size();
  const BufferId in_x = build.input(x), in_bias = build.input(op[1]), in_rate = build.input(op[2]);
  const BufferId out = build.result_page(n);
  GenericStage stage = build.builder().compute("decay", flat(n));
  const Expr value = stage.read(in_x, at(0)), bias = stage.read(in_bias, at(0)), rate = stage.read(in_rate, at(0));
  stage.write(out, decay(value, bias, rate));
  return std::move(build).finish(fmt::format("decay_{}", n), claim(false, "decay", precision));
}

Result<Program> decay_tiles(const OpView& op) {
  const OpTensor& x = op[0];
  return tile_map({.stage = "decay",
                   .name = x.rows > 1 ? fmt::format("decay_{}x{}", x.rows, x.cols) : fmt::format("decay_{}", x.cols),
                   .rows = x.rows,
                   .cols = x.cols,
                   .operands = {{x, "x"}, {op[1], "bias", Spread::Down}, {op[2], "rate", Spread::Down}},
                   .body = decay(arg(0), arg(1), arg(2))},
                  op);
}

Result<Lowered> lower(const graph::Decay&, const OpView& view) {
  const OpTensor& x = view[0];
  const uint64_t tiles = view.target.tiles(x.size());
  if (x.rows > 1 || view.target.wide(x.size())) {
    TW_TRY(Program section, decay_tiles(view));
    if (x.rows > 1) return Lowered{{std::move(section)}, "dense", fmt::format("{} rows", x.rows)};
    return Lowered{{std::move(section)}, "blocked", over_a_page(view.target, tiles)};
  }
  TW_TRY(Program section, decay_row(view));
  return Lowered{{std::move(section)}, "whole row", within_a_page(view.target, tiles)};
}

}  // namespace tw::spatial::lower
