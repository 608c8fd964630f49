// One row: the ring moves up by a row and takes x as its newest, then each channel is a sum over the taps.

#include <fmt/format.h>

#include "spatial/lower/conv_parts.h"
#include "spatial/lower/flat_build.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

Result<void> check_one_row(const OpView& op, const Conv& c) {
  if (c.rows == 1) return {};
  return refuse(RefusalKind::Unsupported, op.subject(), fmt::format("steps by one row, x has {}", c.rows),
                "Use the form for blocks of rows.");
}

std::string ring_name(const Conv& c) { return fmt::format("conv_ring_{}x{}", c.taps, c.chan); }
std::string taps_name(const Conv& c) { return fmt::format("conv_taps_{}x{}", c.taps, c.chan); }

TensorId input_row(Builder& b, const OpView& op, const Conv& c) {
  const OpTensor& x = op[0];
  return b.tensor(x.name, x.read_role(), 1, c.chan, c.x, init_of(x.fill, x.size()));
}

// ---- flat ring ----

Result<Program> shift_flat(const OpView& op, const Conv& c, uint32_t pages) {
  const auto chan = static_cast<int64_t>(c.chan), kept = static_cast<int64_t>((c.taps - 1) * c.chan);
  const uint64_t tiles = op.target.tiles(c.taps * c.chan);
  Builder b(op.target, c.accumulator);
  const TensorId ring = conv_ring(b, op, c, false, TensorRole::State), x = input_row(b, op, c);
  const BufferId in_x = b.buffer("in_x", op.target.tiles(c.chan), c.x, pages);
  b.load("load_x", x, {}, in_x);
  const BufferId out = b.buffer("out", tiles, c.ring, pages);
  GenericStage shift = b.compute("ring_shift", flat(c.taps * c.chan));
  const Expr newest = shift.read(in_x, at(-kept));
  if (c.taps == 1) {
    shift.write(out, newest);
  } else {
    const BufferId in_ring = b.buffer("in_ring", tiles, c.ring, pages);
    b.load("load_ring", ring, {}, in_ring);
    const Expr older = shift.read(in_ring, at(chan));
    shift.write(out, select(less(Axis::Col, kept), older, newest));
  }
  b.store("store_ring", out, ring, {});
  return std::move(b).finish({.name = ring_name(c), .items = one_item(tiles), .claim = conv_ring_claim(c)});
}

Result<Program> taps_flat(const OpView& op, const Conv& c, uint32_t pages) {
  TW_TRY(FlatBuild build, FlatBuild::open(op, c.x));
  const auto chan = static_cast<int64_t>(c.chan);
  const BufferId ring = build.input(op[2], {.depth = pages}), w = build.input(op[1], {.depth = pages});
  const BufferId ones = build.ones(op.result.name + "__conv_scaler"), out = build.result_page(c.chan);
  GenericStage reduce = build.builder().compute("tap_reduce", {reduce_rows(c.taps), cols(c.chan)});
  const Expr value = reduce.read(ring, map3(0, chan, 1)), weight = reduce.read(w, map3(0, chan, 1));
  reduce.scaler(ones);
  reduce.write(out, value * weight);
  return std::move(build).finish(taps_name(c), claim(false, "causal convolution", c.x));
}

// ---- dense ring: a tile holds all taps of a tile of channels ----

Result<Program> shift_matrix(const OpView& op, const Conv& c) {
  const uint64_t tiles = op.target.tiles(c.chan), tw = op.target.tile.cols;
  const auto width = static_cast<int64_t>(tw), kept = static_cast<int64_t>(c.taps - 1);
  const Block tile{.steps = {item_x(1)}};
  Builder b(op.target, c.accumulator);
  const TensorId ring = conv_ring(b, op, c, true, TensorRole::State), x = input_row(b, op, c);
  const BufferId in_x = b.buffer("in_x", 1, c.x), out = b.buffer("out", 1, c.ring);
  b.load("load_x", x, tile, in_x);
  GenericStage shift = b.compute("ring_shift", {rows(c.taps), cols(tw)});
  const Expr newest = shift.read(in_x, col());
  if (c.taps == 1) {
    shift.write(out, newest);
  } else {
    const BufferId in_ring = b.buffer("in_ring", 1, c.ring);
    b.load("load_ring", ring, tile, in_ring);
    const Expr older = shift.read(in_ring, ident(width).shifted(width));
    shift.write(out, select(less(Axis::Row, kept), older, newest));
  }
  b.store("store_ring", out, ring, tile);
  return std::move(b).finish({.name = ring_name(c), .items = row_items(tiles, 1), .claim = conv_ring_claim(c)});
}

Result<Program> taps_matrix(const OpView& op, const Conv& c) {
  const uint64_t tiles = op.target.tiles(c.chan), tw = op.target.tile.cols;
  const auto width = static_cast<int64_t>(tw);
  const Block tile{.steps = {item_x(1)}};
  Builder b(op.target, c.accumulator);
  const TensorId y = b.tensor(op.result.name, TensorRole::Output, 1, c.chan, c.out);
  const TensorId ring = conv_ring(b, op, c, true, TensorRole::Input), w = conv_weight(b, op, c, true);
  const BufferId in_ring = b.buffer("in_ring", 1, c.ring), in_w = b.buffer("in_w", 1, c.w);
  const BufferId ones = b.buffer("in_conv_scaler", 1, c.x), out = b.buffer("out", 1, c.out);
  b.load("load_ring", ring, tile, in_ring);
  b.load("load_w", w, tile, in_w);
  b.load("load_conv_scaler", b.ones(op.result.name + "__conv_scaler", c.x), {}, ones);
  GenericStage reduce = b.compute("tap_reduce", {reduce_rows(c.taps), cols(tw)});
  const Expr value = reduce.read(in_ring, ident(width)), weight = reduce.read(in_w, ident(width));
  reduce.scaler(ones);
  reduce.write(out, value * weight);
  b.store("store_" + op.result.name, out, y, tile);
  return std::move(b).finish(
      {.name = taps_name(c), .items = row_items(tiles, 1), .claim = claim(false, "causal convolution", c.x)});
}

}  // namespace

Result<std::vector<Program>> conv_step_flat(const OpView& op) {
  TW_TRY(const Conv c, conv_of(op));
  TW_TRY_VOID(check_one_row(op, c));
  return conv_sections(op, paged(op.target, [&](uint32_t pages) { return shift_flat(op, c, pages); }),
                       paged(op.target, [&](uint32_t pages) { return taps_flat(op, c, pages); }));
}

Result<std::vector<Program>> conv_step_matrix(const OpView& op) {
  TW_TRY(const Conv c, conv_of(op));
  TW_TRY_VOID(check_one_row(op, c));
  TW_TRY_VOID(conv_fits_tile(op, c));
  return conv_sections(op, within(shift_matrix(op, c), op.target), within(taps_matrix(op, c), op.target));
}

}  // namespace tw::spatial::lower
