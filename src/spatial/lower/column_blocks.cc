#include "spatial/lower/column_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/check.h"
#include "base/round.h"

namespace tw::spatial::lower {
namespace {

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

uint64_t saturated_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? ~uint64_t{0} : product;
}
uint64_t saturated_sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? ~uint64_t{0} : sum;
}

bool moves(const ElemAccess& map) { return map.of(Axis::Col) != 0; }

// What s * o + t * v, with o <= span and v < M, can reach either way: |s| * span + |t| * M. An index is raised by it so
// that it cannot be negative.
uint64_t reach_of(const ElemAccess& map, uint64_t span) {
  const IndirectTerm& term = *map.indirect;
  return saturated_sum(saturated_product(magnitude(map.of(Axis::Col)), span),
                       saturated_product(magnitude(term.stride), term.modulus));
}

// An operand that was only an index or a bound is not read any more once it has been moved.
void drop_unread(Generic& stage, std::vector<BufferId>& pages) {
  std::vector<bool> read(pages.size());
  const std::function<void(uint32_t)> mark = [&](uint32_t operand) {
    if (read[operand]) return;
    read[operand] = true;
    if (stage.ins[operand].indirect) mark(stage.ins[operand].indirect->operand);
  };
  const OperandUses uses = operand_uses(stage.body);
  std::for_each(uses.values.begin(), uses.values.end(), mark);
  std::for_each(uses.bounds.begin(), uses.bounds.end(), mark);

  std::vector<uint32_t> number(pages.size());
  uint32_t kept = 0;
  for (size_t i = 0; i < pages.size(); ++i) {
    number[i] = kept;
    if (!read[i]) continue;
    pages[kept] = pages[i];
    stage.ins[kept++] = stage.ins[i];
  }
  pages.resize(kept);
  stage.ins.resize(kept);
  for (ElemAccess& map : stage.ins)
    if (map.indirect) map.indirect->operand = number[map.indirect->operand];
  Expr body;
  for (Node node : stage.body.nodes()) {
    if (auto* value = std::get_if<OperandNode>(&node)) value->operand = number[value->operand];
    if (auto* choice = std::get_if<SelectNode>(&node); choice && choice->cond.by_operand)
      choice->cond.bound = number[static_cast<size_t>(choice->cond.bound)];
    body.push(node);
  }
  stage.body = std::move(body);
}

}  // namespace

// The stage while it is rewritten. Its operands: 0 the block's first column, then the bounds that were constants, then
// the stage's own, then the pages that moved indices and bounds are computed into.
struct ColumnBlocks::Moved {
  std::vector<int64_t> bounds;
  BufferId table{};
  Precision dtype = Precision::I32;
  std::vector<ElemAccess> maps;              // of own operands
  std::vector<BufferId> pages;               // of moved indices and bounds, one element each
  std::map<uint32_t, uint32_t> moved_bound;  // own operand that bounds columns -> number of what it was moved to

  [[nodiscard]] uint32_t own(uint32_t operand) const { return static_cast<uint32_t>(1 + bounds.size()) + operand; }
  [[nodiscard]] uint32_t constant(int64_t bound) const {
    return static_cast<uint32_t>(1 + (std::find(bounds.begin(), bounds.end(), bound) - bounds.begin()));
  }
};

std::vector<WorkItem> ColumnBlocks::items() const {
  std::vector<WorkItem> made;
  for (uint64_t r = 0; r < tile_rows_; ++r)
    for (uint64_t i = 0; i < count(); ++i) made.push_back({.y = r, .x = i, .out = {r, i * block_, 1, block_}});
  return made;
}

bool ColumnBlocks::follows_column(const PointwiseStage& stage) const {
  const auto by_column = [](const Node& node) {
    const auto* choice = std::get_if<SelectNode>(&node);
    return choice && choice->cond.axis == Axis::Col;
  };
  for (size_t i = 0; i < stage.maps_.size(); ++i)
    if (moves(stage.maps_[i]) && !stage.local_[i]) return true;
  return std::any_of(stage.body_.nodes().begin(), stage.body_.nodes().end(), by_column);
}

std::vector<int64_t> ColumnBlocks::bounds_of(const PointwiseStage& stage) const {
  std::vector<int64_t> bounds;
  const auto add = [&](int64_t bound) {
    if (std::find(bounds.begin(), bounds.end(), bound) == bounds.end()) bounds.push_back(bound);
  };
  for (const Node& node : stage.body_.nodes())
    if (const auto* choice = std::get_if<SelectNode>(&node))
      if (choice->cond.axis == Axis::Col && !choice->cond.by_operand) add(choice->cond.bound);
  return bounds;
}

uint64_t ColumnBlocks::index_space(const PointwiseStage& stage, const std::vector<int64_t>& bounds) const {
  uint64_t most = span();
  for (const int64_t bound : bounds) most = std::max(most, saturated_sum(magnitude(bound), span()));
  for (size_t i = 0; i < stage.maps_.size(); ++i) {
    if (stage.magnitudes_[i] > 0) most = std::max(most, saturated_sum(stage.magnitudes_[i], span()));
    const ElemAccess& map = stage.maps_[i];
    if (stage.local_[i] || !moves(map) || !map.indirect) continue;
    most = std::max(most, saturated_product(2, reach_of(map, span())));
  }
  return most;
}

BufferId ColumnBlocks::load_table(Builder& builder, const std::string& stage, const std::vector<int64_t>& bounds,
                                  Precision dtype) const {
  const uint64_t per = ceil_div(1 + bounds.size(), width_);
  std::vector<int64_t> values(count() * per * width_);
  for (uint64_t i = 0; i < count(); ++i) {
    const auto first = static_cast<int64_t>(i * block_ * width_);
    int64_t* page = values.data() + i * per * width_;
    page[0] = first;
    for (size_t b = 0; b < bounds.size(); ++b) page[1 + b] = bounds[b] - first;
  }
  const uint64_t cols = values.size();
  const TensorId table =
      builder.tensor(stage + "_columns", TensorRole::Param, 1, cols, dtype, integer_values(std::move(values)));
  const BufferId page = builder.buffer("in_" + stage + "_columns", per, dtype, 1);
  builder.load("load_" + stage + "_columns", table, {.steps = {item_x(per)}}, page);
  return page;
}

// One element computed before the stage runs; its operand number in the stage. `own` operands there are.
uint32_t ColumnBlocks::add_page(Moved& moved, size_t own, BufferId page) const {
  moved.pages.push_back(page);
  return moved.own(static_cast<uint32_t>(own + moved.pages.size() - 1));
}

// An own map with an index and a column, moved by s * o: the index becomes s * o + t * v + L, never negative. v is read
// through a guard, since the moved index could hide one that is out of range.
ElemAccess ColumnBlocks::move_index(Builder& builder, const PointwiseStage& stage, size_t operand, Moved& moved) const {
  const ElemAccess& map = stage.maps_[operand];
  const IndirectTerm term = *map.indirect;
  const int64_t stride = map.of(Axis::Col);
  const ElemAccess& of_index = stage.maps_[term.operand];
  TW_CHECK(!moves(of_index) && !of_index.indirect, "index {} of stage {} is more than one element", term.operand,
           stage.name_);
  const auto raise = static_cast<int64_t>(reach_of(map, span()));
  const std::string name = fmt::format("{}_index{}", stage.name_, operand);
  const BufferId page = builder.scratch(name, 1, moved.dtype, 1);
  GenericStage index = builder.compute(name, flat(1));
  const Expr first = index.read(moved.table, fixed(0));
  const Expr value = index.read(stage.pages_[term.operand], of_index.plus(1, 0, term.modulus));
  index.write(page, first * static_cast<double>(stride) + value * static_cast<double>(term.stride) +
                        static_cast<double>(raise));
  ElemAccess plain = map.shifted(-raise);
  plain.indirect.reset();
  return plain.plus(add_page(moved, stage.maps_.size(), page), 1, 2 * static_cast<uint64_t>(raise) + 1);
}

ElemAccess ColumnBlocks::move_map(Builder& builder, const PointwiseStage& stage, size_t operand, Moved& moved) const {
  const ElemAccess& map = stage.maps_[operand];
  if (stage.local_[operand]) return map;
  if (moves(map) && map.indirect) return move_index(builder, stage, operand, moved);
  if (moves(map)) return map.plus(0, map.of(Axis::Col), span() + 1);
  ElemAccess same = map;
  if (same.indirect) same.indirect->operand = moved.own(same.indirect->operand);
  return same;
}

// A bound that is data, less the block's first column; its operand number.
uint32_t ColumnBlocks::move_bound(Builder& builder, const PointwiseStage& stage, uint32_t operand, Moved& moved) const {
  if (const auto at = moved.moved_bound.find(operand); at != moved.moved_bound.end()) return at->second;
  TW_CHECK(!moves(stage.maps_[operand]) && !stage.maps_[operand].indirect,
           "bound {} of stage {} is more than one element", operand, stage.name_);
  const std::string name = fmt::format("{}_bound{}", stage.name_, operand);
  const BufferId page = builder.scratch(name, 1, moved.dtype, 1);
  GenericStage bound = builder.compute(name, flat(1));
  const Expr first = bound.read(moved.table, fixed(0));
  const Expr value = bound.read(stage.pages_[operand], stage.maps_[operand]);
  bound.write(page, value - first);
  return moved.moved_bound[operand] = add_page(moved, stage.maps_.size(), page);
}

Expr ColumnBlocks::move_body(Builder& builder, const PointwiseStage& stage, Moved& moved) const {
  Expr body;
  for (Node node : stage.body_.nodes()) {
    if (auto* value = std::get_if<OperandNode>(&node)) value->operand = moved.own(value->operand);
    if (auto* choice = std::get_if<SelectNode>(&node)) {
      Pred& cond = choice->cond;
      const bool column = cond.axis == Axis::Col;
      if (cond.by_operand) {
        const auto operand = static_cast<uint32_t>(cond.bound);
        cond.bound = column ? move_bound(builder, stage, operand, moved) : moved.own(operand);
      } else if (column) {
        cond.bound = moved.constant(cond.bound);
        cond.by_operand = true;
      }
    }
    body.push(node);
  }
  return body;
}

Result<void> ColumnBlocks::write(Builder& builder, PointwiseStage stage, BufferId out, std::string_view subject) const {
  if (n_ < span()) stage.body(select(less(Axis::Col, static_cast<int64_t>(n_)), stage.body_, 0.0));
  Moved moved{.bounds = bounds_of(stage)};
  if (follows_column(stage)) {
    TW_TRY(moved.dtype, index_precision(builder.target(), index_space(stage, moved.bounds), subject));
    moved.table = load_table(builder, fmt::format("{}__{}", subject, stage.name_), moved.bounds, moved.dtype);
  }
  for (size_t i = 0; i < stage.maps_.size(); ++i) moved.maps.push_back(move_map(builder, stage, i, moved));
  Generic blocked{stage.space(block_ * width_), {}, move_body(builder, stage, moved)};

  std::vector<BufferId> pages(1 + moved.bounds.size(), moved.table);
  for (size_t b = 0; b <= moved.bounds.size(); ++b) blocked.ins.push_back(fixed(static_cast<int64_t>(b)));
  pages.insert(pages.end(), stage.pages_.begin(), stage.pages_.end());
  blocked.ins.insert(blocked.ins.end(), moved.maps.begin(), moved.maps.end());
  pages.insert(pages.end(), moved.pages.begin(), moved.pages.end());
  blocked.ins.resize(pages.size(), fixed(0));
  drop_unread(blocked, pages);
  if (stage.scaler_) {
    pages.push_back(*stage.scaler_);
    blocked.ins.push_back(fixed(0));
  }
  builder.compute(std::move(stage.name_), std::move(blocked), std::move(pages), out);
  return {};
}

}  // namespace tw::spatial::lower
