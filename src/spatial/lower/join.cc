#include "spatial/lower/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "spatial/lower/dense_build.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/unit_tiles.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

struct Widths {
  uint64_t rows = 0;
  uint64_t heads = 0;
  uint64_t a = 0;  // of a unit
  uint64_t b = 0;
  Precision in_a{};
  Precision in_b{};
  Precision out{};

  [[nodiscard]] uint64_t units() const { return rows * heads; }
  [[nodiscard]] uint64_t row() const { return heads * (a + b); }  // of the result
  [[nodiscard]] NumericsClaim claim() const {
    const NumericsClaim first = moved("join", in_a, out);
    return first.exact ? moved("join", in_b, out) : first;
  }
};

Result<Widths> widths_of(const graph::Join& op, const OpView& view) {
  const OpTensor &a = view[0], &b = view[1];
  const auto no = [&](std::string reason) {
    return refuse(RefusalKind::Unsupported, view.subject(), std::move(reason),
                  "Join tensors of equal rows, in whole heads.");
  };
  if (op.heads == 0 || a.cols % op.heads != 0 || b.cols % op.heads != 0)
    return no(fmt::format("joins {} and {} columns in {} heads", a.cols, b.cols, op.heads));
  if (a.rows != b.rows) return no(fmt::format("joins {} rows to {}", b.rows, a.rows));
  if (a.rows * (a.cols + b.cols) == 0) return no("joins nothing to nothing");
  TW_TRY(const Precision precision, element_of(view, a));
  return Widths{a.rows,
                op.heads,
                a.cols / op.heads,
                b.cols / op.heads,
                precision,
                b.stored(precision),
                view.result.stored(precision)};
}

bool joins_whole_tiles(const Widths& w, const Target& target) {
  return w.a > 0 && w.b > 0 && target.whole(w.a) && target.whole(w.b);
}

std::string join_name(const graph::Join& op, const OpView& view, const Widths& w) {
  return fmt::format("join_{}x{}_{}+{}", view[0].rows, op.heads, w.a, w.b);
}

// Unit u of the result: a's, read by read_a(shift), then b's.
template <class ReadA, class ReadB>
Expr joined(const Widths& w, uint64_t units, ReadA&& read_a, ReadB&& read_b) {
  const auto a = static_cast<int64_t>(w.a), b = static_cast<int64_t>(w.b);
  std::vector<Band> bands;
  for (int64_t u = 0; u < static_cast<int64_t>(units); ++u) {
    if (a > 0) bands.push_back({u * (a + b) + a, read_a(-u * b)});
    if (b > 0) bands.push_back({(u + 1) * (a + b), read_b(-(u + 1) * a)});
  }
  return banded(bands);
}

// The tile form: every item reads a block of both operands, at addresses that are valid whichever block of the result
// it makes, and a table says which of the two it keeps.
class JoinTiles {
 public:
  JoinTiles(const OpView& view, const Widths& widths, Precision accumulator)
      : view_(view), w_(widths), b_(view.target, accumulator) {
    a_tiles_ = view.target.tiles(w_.a);
    b_tiles_ = view.target.tiles(w_.b);
    block_ = view.target.block_of(std::gcd(a_tiles_, b_tiles_));
  }

  Result<Program> build(std::string name) && {
    const uint64_t tw = b_.target().tile.cols, blocks = a_blocks() + b_blocks();
    TW_TRY(index_, index_precision(b_.target(), std::max(block_ * tw, blocks) + 1, view_.subject()));
    const BufferId in_a = load_part(view_[0], "a", a_tiles_, table_a(), w_.in_a);
    const BufferId in_b = load_part(view_[1], "b", b_tiles_, table_b(), w_.in_b);
    const BufferId keep = load_table("keep_a", table_keep());
    const std::string& result_name = view_.result.name;
    const TensorId result = b_.tensor(result_name, TensorRole::Output, w_.rows, w_.row(), w_.out);
    const BufferId out = b_.buffer("out", block_, w_.out);
    const UnitTiles units{.rows = w_.rows, .heads = w_.heads, .tiles = a_tiles_ + b_tiles_, .block = block_};
    const ElemAccess whole = ident(b_.width(out));
    GenericStage stage = b_.compute("join", units.space(b_.target()));
    const uint32_t kept = stage.operand(keep, fixed(0));
    const Expr a = stage.read(in_a, whole), b = stage.read(in_b, whole);
    stage.write(out, select(less_than_operand(Axis::Col, kept), a, b));
    b_.store("store_" + result_name, out, result, {.steps = {item_y(a_tiles_ + b_tiles_), item_x(block_)}});
    return std::move(b_).finish({.name = std::move(name), .items = units.items(b_.target()), .claim = w_.claim()});
  }

 private:
  [[nodiscard]] uint64_t a_blocks() const { return a_tiles_ / block_; }
  [[nodiscard]] uint64_t b_blocks() const { return b_tiles_ / block_; }

  // By block of the result: the block of a, that of b, and how many columns are a's.
  template <class Value>
  [[nodiscard]] std::vector<int64_t> table(Value&& value) const {
    std::vector<int64_t> made;
    for (uint64_t s = 0; s < a_blocks() + b_blocks(); ++s) made.push_back(static_cast<int64_t>(value(s)));
    return made;
  }
  [[nodiscard]] std::vector<int64_t> table_a() const {
    return table([&](uint64_t s) { return std::min(s, a_blocks() - 1); });
  }
  [[nodiscard]] std::vector<int64_t> table_b() const {
    return table([&](uint64_t s) { return s < a_blocks() ? 0 : s - a_blocks(); });
  }
  [[nodiscard]] std::vector<int64_t> table_keep() const {
    return table([&](uint64_t s) { return s < a_blocks() ? block_ * b_.target().tile.cols : 0; });
  }

  BufferId load_table(const std::string& what, const std::vector<int64_t>& values) {
    const TensorId table = b_.scalar_table(view_.result.name + "__join_" + what, index_, values);
    const BufferId page = b_.buffer("in_" + what, 1, index_, 1);
    b_.load("load_" + what, table, {.steps = {item_x(1)}}, page);
    return page;
  }
  BufferId load_part(const OpTensor& operand, const std::string& what, uint64_t tiles,
                     const std::vector<int64_t>& blocks, Precision dtype) {
    const BufferId block = load_table("from_" + what, blocks);
    if (what == "a" || operand.name != view_[0].name)
      tensor_ = b_.tensor(operand.name, operand.read_role(), operand.rows, operand.cols, dtype,
                          init_of(operand.fill, operand.size()));
    const BufferId page = b_.buffer("in_" + what, block_, dtype);
    const IndirectTile from{block, block_, 1, 0, static_cast<int64_t>(tiles / block_) - 1};
    b_.load("load_" + what, tensor_, {.steps = {item_y(tiles)}, .indirect = from}, page);
    return page;
  }

  const OpView& view_;
  const Widths& w_;
  Builder b_;
  uint64_t a_tiles_ = 1;
  uint64_t b_tiles_ = 1;
  uint64_t block_ = 1;
  Precision index_{};
  TensorId tensor_{};  // of the operand that was loaded last
};

}  // namespace

Result<Program> join_flat(const graph::Join& op, const OpView& view) {
  TW_TRY(const Widths w, widths_of(op, view));
  const auto build = [&](uint32_t pages) -> Result<Program> {
    TW_TRY(FlatBuild made, FlatBuild::open(view, w.in_a));
    const BufferId in_a = w.a > 0 ? made.input(view[0], {.depth = pages}) : BufferId{};
    const BufferId in_b = w.b > 0 ? made.input(view[1], {.depth = pages}) : BufferId{};
    PointwiseStage stage("join");
    stage.body(joined(
        w, w.units(), [&](int64_t shift) { return stage.read(in_a, at(shift)); },
        [&](int64_t shift) { return stage.read(in_b, at(shift)); }));
    return std::move(made).pointwise(std::move(stage), w.rows * w.row(), join_name(op, view, w), w.claim());
  };
  return within(paged(view.target, build), view.target);
}

Result<Program> join_rows(const graph::Join& op, const OpView& view) {
  TW_TRY(const Widths w, widths_of(op, view));
  const auto build = [&](uint32_t pages) -> Result<Program> {
    TW_TRY(DenseBuild made, DenseBuild::open(view, w.in_a, pages));
    const BufferId in_a = w.a > 0 ? made.input(view[0]) : BufferId{};
    const BufferId in_b = w.b > 0 ? made.input(view[1]) : BufferId{};
    PointwiseStage stage("join");
    stage.body(joined(
        w, w.heads, [&](int64_t shift) { return made.read(stage, in_a, shift); },
        [&](int64_t shift) { return made.read(stage, in_b, shift); }));
    return std::move(made).pointwise(std::move(stage), join_name(op, view, w) + "_rows", w.claim());
  };
  return within(paged(view.target, build), view.target);
}

Result<Program> join_tiles(const graph::Join& op, const OpView& view) {
  TW_TRY(const Widths w, widths_of(op, view));
  if (!joins_whole_tiles(w, view.target))
    return refuse(
        RefusalKind::Unsupported, view.subject(),
        fmt::format("moves tiles of {} columns, the units are {} and {} wide", view.target.tile.cols, w.a, w.b),
        "Use the flat form.");
  TW_TRY(const Precision accumulator, accumulator_for(view.target, w.in_a, view.subject()));
  return JoinTiles(view, w, accumulator).build(join_name(op, view, w) + "_tiled");
}

Result<Lowered> lower(const graph::Join& op, const OpView& view) {
  TW_TRY(const Widths w, widths_of(op, view));
  if (joins_whole_tiles(w, view.target)) {
    TW_TRY(Program section, join_tiles(op, view));
    return Lowered{{std::move(section)}, "tiles", fmt::format("{} and {} are whole tiles", w.a, w.b)};
  }
  const uint64_t n = w.rows * w.row(), tiles = view.target.tiles(n);
  if (w.rows > 1 && view.target.wide(n)) {
    TW_TRY(Program section, join_rows(op, view));
    return Lowered{{std::move(section)}, "rows", over_a_page(view.target, tiles)};
  }
  TW_TRY(Program section, join_flat(op, view));
  if (view.target.wide(n)) return Lowered{{std::move(section)}, "column blocks", over_a_page(view.target, tiles)};
  return Lowered{{std::move(section)}, "flat", within_a_page(view.target, tiles)};
}

}  // namespace tw::spatial::lower
