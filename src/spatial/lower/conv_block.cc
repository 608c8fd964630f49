// A block of rows. E is the ring's rows, then the block's: output row y is a sum over taps t of w[t] * E[y + 1 + t],
// and the new ring is the last rows of E.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "spatial/lower/conv_parts.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// How the block is cut: items of `block` tiles of a tile row.
struct ConvCut {
  uint64_t rows_t = 1;
  uint64_t cols_t = 1;
  uint64_t block = 1;
  bool dense = false;  // ring and weights

  ConvCut(const OpView& op, const Conv& c, bool dense_ring) : dense(dense_ring) {
    const TileGrid grid = grid_of({.rows = c.rows, .cols = c.chan}, op.target.tile);
    rows_t = grid.rows;
    cols_t = grid.cols;
    block = dense ? op.target.block_of(cols_t) : cols_t;
  }
  // Elements from a tap's row to the next in a page of the ring or the weights.
  [[nodiscard]] int64_t pitch(const OpView& op, const Conv& c) const {
    return static_cast<int64_t>(dense ? block * op.target.tile.cols : c.chan);
  }
  [[nodiscard]] uint64_t ring_tiles(const OpView& op, const Conv& c) const {
    return dense ? block : op.target.tiles(c.taps * c.chan);
  }
  [[nodiscard]] Block ring_block() const { return dense ? Block{.steps = {item_x(block)}} : Block{}; }
};

TensorId input_rows(Builder& b, const OpView& op, const Conv& c) {
  const OpTensor& x = op[0];
  return b.tensor(x.name, x.read_role(), c.rows, c.chan, c.x, init_of(x.fill, x.size()));
}

// ---- outputs ----

class ConvRows {
 public:
  ConvRows(const OpView& op, const Conv& c, const ConvCut& cut, uint32_t pages)
      : op_(op), c_(c), cut_(cut), pages_(pages), b_(op.target, c.accumulator) {}

  Result<Program> build() && {
    const TensorId y = b_.tensor(op_.result.name, TensorRole::Output, c_.rows, c_.chan, c_.out);
    TW_TRY_VOID(load());
    const BufferId out = b_.buffer("out", cut_.block, c_.out, pages_);
    const uint64_t columns = cut_.dense ? cut_.block * tile().cols : c_.chan;
    GenericStage stage = b_.compute("conv_rows", {rows(tile().rows), cols(columns)});
    stage.write(out, sum(stage));
    b_.store("store_" + op_.result.name, out, y, {.steps = {item_y(cut_.cols_t), item_x(cut_.block)}});
    return std::move(b_).finish({.name = fmt::format("conv_rows_{}x{}_taps{}", c_.rows, c_.chan, c_.taps),
                                 .items = items(),
                                 .claim = claim(false, "causal convolution", c_.x)});
  }

 private:
  [[nodiscard]] TileShape tile() const { return op_.target.tile; }
  [[nodiscard]] bool several() const { return cut_.rows_t > 1; }

  [[nodiscard]] std::vector<WorkItem> items() const {
    std::vector<WorkItem> made;
    for (uint64_t r = 0; r < cut_.rows_t; ++r)
      for (uint64_t j = 0; j < cut_.cols_t / cut_.block; ++j)
        made.push_back({.y = r, .x = j, .out = {r, j * cut_.block, 1, cut_.block}});
    return made;
  }

  BufferId table(const std::string& what, Precision index, uint64_t first, auto&& rest) {
    std::vector<int64_t> values{static_cast<int64_t>(first)};
    for (uint64_t r = 1; r < cut_.rows_t; ++r) values.push_back(static_cast<int64_t>(rest(r)));
    const TensorId made = b_.scalar_table(op_.result.name + "__conv_" + what, index, values);
    const BufferId page = b_.buffer("in_" + what, 1, index, 1);
    b_.load("load_" + what, made, {.steps = {item_y(1)}}, page);
    return page;
  }

  // The item's rows, those of the tile row before it, and which of the rows before the item's are the ring's: all of
  // the first tile row, none of a later one.
  Result<void> load() {
    const TensorId x = input_rows(b_, op_, c_);
    own_ = b_.buffer("in_x", cut_.block, c_.x, pages_);
    b_.load("load_x", x, {.steps = {item_y(cut_.cols_t), item_x(cut_.block)}}, own_);
    weight_ = b_.buffer("in_w", cut_.ring_tiles(op_, c_), c_.w, pages_);
    b_.load("load_w", conv_weight(b_, op_, c_, cut_.dense), cut_.ring_block(), weight_);
    if (c_.taps == 1) return {};
    ring_ = b_.buffer("in_ring", cut_.ring_tiles(op_, c_), c_.ring, pages_);
    b_.load("load_ring", conv_ring(b_, op_, c_, cut_.dense, TensorRole::Input), cut_.ring_block(), ring_);
    if (!several()) return {};
    const uint64_t most = std::max<uint64_t>(tile().rows, cut_.rows_t);
    TW_TRY(const Precision index, index_precision(op_.target, most, op_.subject()));
    const BufferId which = table("previous", index, 0, [](uint64_t r) { return r - 1; });
    previous_ = b_.buffer("in_previous_x", cut_.block, c_.x, pages_);
    const IndirectTile from{which, cut_.cols_t, 1, 0, static_cast<int64_t>(cut_.rows_t) - 1};
    b_.load("load_previous_x", x, {.steps = {item_x(cut_.block)}, .indirect = from}, previous_);
    halo_ = table("halo", index, tile().rows, [](uint64_t) { return uint64_t{0}; });
    return {};
  }

  // Plane row r, tap t needs the row r + 1 + t - taps of the tile row: its own, or one before it.
  Expr term(GenericStage& stage, int64_t t, uint32_t halo) {
    const auto taps = static_cast<int64_t>(c_.taps), tile_rows = static_cast<int64_t>(tile().rows);
    const int64_t width = b_.width(own_), pitch = cut_.pitch(op_, c_), first = taps - 1 - t;
    const Expr weight = stage.read(weight_, at(t * pitch)), own = stage.read(own_, map3(-first * width, width, 1));
    if (first == 0) return weight * own;
    Expr before = stage.read(ring_, map3((1 + t) * pitch, pitch, 1));
    if (several()) {
      const Expr previous = stage.read(previous_, map3((tile_rows - first) * width, width, 1));
      before = select(less_than_operand(Axis::Row, halo), before, previous);
    }
    return weight * select(at_least(Axis::Row, first), own, before);
  }

  Expr sum(GenericStage& stage) {
    const uint32_t halo = several() && c_.taps > 1 ? stage.operand(halo_, fixed(0)) : 0;
    Expr total = term(stage, 0, halo);
    for (int64_t t = 1; t < static_cast<int64_t>(c_.taps); ++t) total = total + term(stage, t, halo);
    return total;
  }

  const OpView& op_;
  const Conv& c_;
  const ConvCut& cut_;
  uint32_t pages_;
  Builder b_;
  BufferId own_{};
  BufferId weight_{};
  BufferId ring_{};
  BufferId previous_{};
  BufferId halo_{};
};

// ---- the new ring ----

class ConvRing {
 public:
  ConvRing(const OpView& op, const Conv& c, const ConvCut& cut, uint32_t pages)
      : op_(op), c_(c), cut_(cut), pages_(pages), b_(op.target, c.accumulator) {}

  Result<Program> build() && {
    ring_ = conv_ring(b_, op_, c_, cut_.dense, TensorRole::State);
    x_ = input_rows(b_, op_, c_);
    const uint64_t tiles = cut_.ring_tiles(op_, c_), width = cut_.block * op_.target.tile.cols;
    const BufferId out = b_.buffer("out", tiles, c_.ring, pages_);
    load_sources();
    GenericStage stage =
        b_.compute("ring_rows", cut_.dense ? std::vector<Iter>{rows(c_.taps), cols(width)} : flat(c_.taps * c_.chan));
    std::vector<Band> bands;
    const int64_t end = cut_.dense ? 1 : static_cast<int64_t>(c_.chan);
    for (uint64_t t = 0; t < c_.taps; ++t) bands.push_back({(static_cast<int64_t>(t) + 1) * end, source(stage, t)});
    stage.write(out, banded(bands, cut_.dense ? Axis::Row : Axis::Col));
    b_.store("store_ring", out, ring_, cut_.ring_block());
    return std::move(b_).finish({.name = fmt::format("conv_ring_rows_{}x{}_taps{}", c_.rows, c_.chan, c_.taps),
                                 .items = cut_.dense ? row_items(cut_.cols_t, cut_.block) : one_item(tiles),
                                 .claim = conv_ring_claim(c_)});
  }

 private:
  // The row of E that becomes row t of the ring is one of the old ring's, or this one of the block's.
  [[nodiscard]] bool from_ring(uint64_t t) const { return c_.rows + t < c_.taps; }
  [[nodiscard]] uint64_t block_row(uint64_t t) const { return c_.rows + t - c_.taps; }
  [[nodiscard]] uint64_t tile_row(uint64_t t) const { return block_row(t) / op_.target.tile.rows; }

  void load_sources() {
    if (from_ring(0)) {
      in_ring_ = b_.buffer("in_ring", cut_.ring_tiles(op_, c_), c_.ring, pages_);
      b_.load("load_ring", ring_, cut_.ring_block(), in_ring_);
    }
    for (uint64_t t = 0; t < c_.taps; ++t) {
      if (from_ring(t) || pages_of_.contains(tile_row(t))) continue;
      const std::string suffix = fmt::format("{}", tile_row(t));
      const BufferId page = b_.buffer("in_x" + suffix, cut_.block, c_.x, pages_);
      b_.load("load_x" + suffix, x_, {.base = tile_row(t) * cut_.cols_t, .steps = {item_x(cut_.block)}}, page);
      pages_of_.emplace(tile_row(t), page);
    }
  }

  // Row t of the result begins at element t * pitch of its page, or in plane row t; the source's row at `start`.
  Expr source(GenericStage& stage, uint64_t t) {
    const bool old = from_ring(t);
    const BufferId page = old ? in_ring_ : pages_of_.at(tile_row(t));
    const int64_t pitch = cut_.pitch(op_, c_), from = old ? pitch : b_.width(page);
    const auto row = static_cast<int64_t>(old ? c_.rows + t : block_row(t) % op_.target.tile.rows);
    const auto to = static_cast<int64_t>(t);
    if (cut_.dense) return stage.read(page, map3((row - to) * from, from, 1));
    return stage.read(page, at(row * from - to * pitch));
  }

  const OpView& op_;
  const Conv& c_;
  const ConvCut& cut_;
  uint32_t pages_;
  Builder b_;
  TensorId ring_{};
  TensorId x_{};
  BufferId in_ring_{};
  std::map<uint64_t, BufferId> pages_of_;  // by tile row of x
};

}  // namespace

Result<std::vector<Program>> conv_block(const OpView& op, bool dense_ring) {
  TW_TRY(const Conv c, conv_of(op));
  TW_TRY_VOID(conv_fits_tile(op, c));
  if (op[0].name == op[1].name)
    return refuse(
        RefusalKind::Unsupported, op.subject(),
        fmt::format("{} is both the {} rows and the weights, which lie in different layouts", op[0].name, c.rows),
        "Copy one of the two to a tensor of its own.");
  const ConvCut cut(op, c, dense_ring);
  const auto outputs = [&](uint32_t pages) { return ConvRows(op, c, cut, pages).build(); };
  const auto ring = [&](uint32_t pages) { return ConvRing(op, c, cut, pages).build(); };
  return conv_sections(op, within(paged(op.target, outputs), op.target), within(paged(op.target, ring), op.target));
}

}  // namespace tw::spatial::lower
