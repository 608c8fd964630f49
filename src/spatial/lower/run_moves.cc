#include "spatial/lower/run_moves.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/round.h"
#include "spatial/builder.h"
#include "spatial/lower/index.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// Columns a to b of a tile of the result are the source's from element `from` on.
struct Piece {
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t from = 0;

  [[nodiscard]] uint64_t past() const { return from + b - a; }
};
using Pieces = std::vector<Piece>;  // of one tile, in order

std::vector<Pieces> pieces_of(std::span<const MovedRun> runs, const OpView& op) {
  const uint64_t width = op.target.tile.cols;
  std::vector<Pieces> tiles(op.target.tiles(op.result.size()));
  uint64_t begin = 0;
  for (const MovedRun& run : runs) {
    TW_CHECK(run.end > begin && (!run.from || *run.from + run.end - begin <= op[0].size()),
             "a run of {} from element {} to {}", op[0].name, begin, run.end);
    for (uint64_t at = begin; run.from && at < run.end;) {
      const uint64_t tile = at / width, end = std::min(run.end, (tile + 1) * width);
      tiles[tile].push_back({at - tile * width, end - tile * width, *run.from + at - begin});
      at = end;
    }
    begin = run.end;
  }
  TW_CHECK(begin == op.result.size(), "runs of {} elements for {} of {}", begin, op.result.size(), op.result.name);
  return tiles;
}

// What the table says of every tile of the result: its window's first tile, then a, b and an offset for each piece. The
// window's element for column c is c - tw + offset, so that no offset is negative.
class RunTable {
 public:
  RunTable(const std::vector<Pieces>& tiles, const OpView& op)
      : width_(op.target.tile.cols), source_tiles_(op.target.tiles(op[0].size())) {
    for (const Pieces& pieces : tiles) {
      const auto [first, past] = reach(pieces);
      window_ = std::max(window_, past - first);
      most_ = std::max<uint64_t>(most_, pieces.size());
    }
    tiles_a_page_ = ceil_div(numbers(), width_);
    values_.resize(tiles.size() * tiles_a_page_ * width_);
    for (size_t i = 0; i < tiles.size(); ++i) fill(tiles[i], values_.data() + i * tiles_a_page_ * width_);
  }

  [[nodiscard]] uint64_t window() const { return window_; }  // tiles
  [[nodiscard]] uint64_t last_tile() const { return source_tiles_ - window_; }
  [[nodiscard]] uint64_t most_pieces() const { return most_; }
  [[nodiscard]] uint64_t tiles_a_page() const { return tiles_a_page_; }
  [[nodiscard]] uint64_t offsets() const { return offsets_; }  // all are below
  [[nodiscard]] uint64_t largest() const {
    return static_cast<uint64_t>(*std::max_element(values_.begin(), values_.end()));
  }
  [[nodiscard]] const std::vector<int64_t>& values() const { return values_; }

 private:
  [[nodiscard]] uint64_t numbers() const { return 1 + 3 * most_; }

  // Tiles of the source: the first that the pieces need, and the one past the last.
  [[nodiscard]] std::pair<uint64_t, uint64_t> reach(const Pieces& pieces) const {
    if (pieces.empty()) return {0, 1};
    uint64_t first = pieces[0].from, past = 0;
    for (const Piece& piece : pieces) {
      first = std::min(first, piece.from);
      past = std::max(past, piece.past());
    }
    return {first / width_, ceil_div(past, width_)};
  }

  void fill(const Pieces& pieces, int64_t* page) {
    const uint64_t first = std::min(reach(pieces).first, last_tile());
    const auto put = [&](uint64_t at, uint64_t value) { page[at] = static_cast<int64_t>(value); };
    put(0, first);
    const uint64_t end = pieces.empty() ? 0 : pieces.back().b;
    for (uint64_t p = 0; p < most_; ++p) {
      const bool there = p < pieces.size();
      put(1 + 3 * p, there ? pieces[p].a : end);
      put(2 + 3 * p, there ? pieces[p].b : end);
      const uint64_t offset = there ? pieces[p].from + width_ - first * width_ - pieces[p].a : width_;
      put(3 + 3 * p, offset);
      offsets_ = std::max(offsets_, offset + 1);
    }
  }

  uint64_t width_;
  uint64_t source_tiles_;
  uint64_t window_ = 1;
  uint64_t most_ = 1;
  uint64_t tiles_a_page_ = 1;
  uint64_t offsets_ = 1;
  std::vector<int64_t> values_;
};

}  // namespace

std::vector<MovedRun> joined_zero_runs(std::span<const MovedRun> runs) {
  std::vector<MovedRun> joined;
  uint64_t begin = 0;
  for (const MovedRun& run : runs) {
    if (run.end <= begin) continue;
    begin = run.end;
    if (!joined.empty() && !joined.back().from && !run.from) {
      joined.back().end = run.end;
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

Result<Program> run_moves(std::span<const MovedRun> runs, const OpView& op) {
  const RunTable table(pieces_of(runs, op), op);
  const uint64_t width = op.target.tile.cols, per = table.tiles_a_page(), tiles = op.target.tiles(op.result.size());
  TW_TRY(const Precision dtype, table_precision(op, op[0]));
  TW_TRY(const Precision accumulator, accumulator_for(op.target, dtype, op.subject()));
  TW_TRY(const Precision ix,
         index_precision(op.target, std::max(table.largest(), op.target.tiles(op[0].size())), op.subject()));
  const Precision result = op.result.stored(dtype);

  Builder b(op.target, accumulator);
  const TensorId from = declare_flat(b, op[0], dtype);
  const TensorId places = b.tensor(op.result.name + "__runs", TensorRole::Param, 1, table.values().size(), ix,
                                   integer_values(table.values()));
  const TensorId to = b.tensor(op.result.name, TensorRole::Output, 1, op.result.size(), result);
  // Loaded twice: a page has one reader, the movement that it addresses or the stage.
  const BufferId first = b.buffer("in_first", 1, ix), pieces = b.buffer("in_runs", per, ix);
  const BufferId window = b.buffer("in_window", table.window(), dtype), out = b.buffer("out", 1, result);
  b.load("load_first", places, {.steps = {item_x(per)}}, first);
  b.load("load_runs", places, {.steps = {item_x(per)}}, pieces);
  b.load("load_window", from, {.indirect = IndirectTile{first, 1, 1, 0, static_cast<int64_t>(table.last_tile())}},
         window);
  GenericStage stage = b.compute("move_runs", flat(width));
  Expr body = 0.0;
  for (uint64_t p = table.most_pieces(); p-- > 0;) {
    const auto at_piece = [&](uint64_t field) {
      return stage.operand(pieces, fixed(static_cast<int64_t>(1 + 3 * p + field)));
    };
    const Pred before = less_than_operand(Axis::Col, at_piece(0)), inside = less_than_operand(Axis::Col, at_piece(1));
    const ElemAccess map = at(-static_cast<int64_t>(width)).plus(at_piece(2), 1, table.offsets());
    body = select(before, 0.0, select(inside, stage.read(window, map), body));
  }
  stage.write(out, std::move(body));
  b.store("store_" + op.result.name, out, to, {.steps = {item_x(1)}});
  return within(std::move(b).finish({.name = "move_runs_" + op.result.name,
                                     .items = row_items(tiles, 1),
                                     .claim = claim(dtype == result || is_integer(dtype), "run moves", result)}),
                op.target);
}

}  // namespace tw::spatial::lower
