#include "spatial/evaluate/testing/naive.h"

#include <deque>
#include <limits>
#include <map>
#include <string>

#include "base/check.h"
#include "spatial/evaluate/arithmetic.h"
#include "spatial/evaluate/codec.h"
#include "spatial/issue.h"

namespace tw::spatial::evaluate::testing {
namespace {

// An element: its value, and the integer itself when it is one.
struct Number {
  double real = 0;
  int64_t integer = 0;
};
Number of_integer(int64_t value) { return {static_cast<double>(value), value}; }

using Page = std::vector<Number>;
using Point = std::array<int64_t, kAxes>;

class Naive {
 public:
  Naive(const Program& program, Memory& memory)
      : program_(program), memory_(memory), uses_(buffer_uses(program)), queues_(program.buffers.size()) {}

  // Throws a Fault.
  void run(Run& run) {
    for (uint32_t i = 0; i < program_.tensors.size(); ++i) read_tensor(i);
    run.blocks = blocks();
    for (item_ = 0; item_ < program_.work.items.size(); ++item_) run_item(run.blocks);
    for (uint32_t i = 0; i < program_.tensors.size(); ++i)
      if (program_.tensors[i].result()) write_tensor(i);
  }

 private:
  // ---- tensors ----

  void read_tensor(uint32_t id) {
    const Tensor& tensor = program_.tensors[id];
    std::vector<Number>& values = tensors_[id];
    values.resize(tensor.size());
    if (tensor.role == TensorRole::Output) return;
    TW_CHECK(memory_.declare(tensor).ok(), "{} is declared otherwise", tensor.name);
    if (is_integer(tensor.dtype)) {
      const auto held = memory_.integers(tensor.name);
      TW_CHECK(held.ok(), "{}", to_text(held.refusal()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = of_integer((*held)[i]);
    } else {
      const auto held = memory_.reals(tensor.name);
      TW_CHECK(held.ok(), "{}", to_text(held.refusal()));
      for (size_t i = 0; i < values.size(); ++i) values[i].real = (*held)[i];
    }
  }

  void write_tensor(uint32_t id) {
    const Tensor& tensor = program_.tensors[id];
    std::vector<double> reals;
    std::vector<int64_t> integers;
    for (const Number& value : tensors_[id]) {
      reals.push_back(value.real);
      integers.push_back(value.integer);
    }
    const auto done = is_integer(tensor.dtype) ? memory_.set(tensor, integers) : memory_.set(tensor, reals);
    TW_CHECK(done.ok(), "{}", to_text(done.refusal()));
  }

  // The element at (y, x) of a tile; null in the padding.
  Number* element(TensorId id, uint64_t tile, uint64_t y, uint64_t x) {
    const Tensor& tensor = program_.at(id);
    const TileGrid grid = grid_of(tensor, program_.tile);
    const uint64_t row = tile / grid.cols * program_.tile.rows + y, col = tile % grid.cols * program_.tile.cols + x;
    return row < tensor.rows && col < tensor.cols ? &tensors_[index(id)][row * tensor.cols + col] : nullptr;
  }

  uint64_t blocks() {
    if (!program_.work.k_trip) return program_.fold() ? program_.work.plan.num_blocks : 1;
    const Trip& trip = *program_.work.k_trip;
    const int64_t count = tensors_[index(trip.tensor)][trip.elem].integer;
    if (count < trip.low || count > trip.high)
      throw Fault{FaultKind::TripRange,          program_.name, {},       0,
                  program_.at(trip.tensor).name, count,         trip.low, trip.high};
    return trip.count(count);
  }

  // ---- the nest ----

  void run_item(uint64_t blocks) {
    const BlockPlan& plan = program_.work.plan;
    const WorkItem& item = program_.work.items[item_];
    for (uint64_t h = 0; h < plan.sub_h(); ++h)
      for (uint64_t w = 0; w < plan.sub_w(); ++w) {
        at_ = {item.y, item.x, h, w, 0};
        run_level(FoldLevel::Prologue, 1);
        for (uint64_t k = 0; k < blocks; ++k) {
          at_[4] = k;
          run_level(FoldLevel::Body, blocks);
        }
        at_[4] = 0;
        run_level(FoldLevel::Epilogue, 1);
        for (uint32_t b = 0; b < queues_.size(); ++b)
          if (carry_of(program_, BufferId{b}, uses_[b])) queues_[b].clear();
      }
  }

  void run_level(FoldLevel level, uint64_t blocks) {
    const bool last = at_[4] + 1 == blocks;
    for (uint32_t i = 0; i < program_.stages.size(); ++i) {
      if (program_.stages[i].level != level) continue;
      stage_ = &program_.stages[i];
      if (stage_->load()) load();
      if (stage_->store()) store();
      if (stage_->generic()) generic();
      if (stage_->matmul()) matmul(i, last);
      for (uint32_t b = 0; b < queues_.size(); ++b) pop_after(StageId{i}, BufferId{b}, last);
    }
  }

  void pop_after(StageId stage, BufferId buffer, bool last) {
    const BufferUses& uses = uses_[index(buffer)];
    std::deque<Page>& queue = queues_[index(buffer)];
    if (const auto carry = carry_of(program_, buffer, uses)) {
      if (carry->update == stage) queue.pop_front();
      return;
    }
    const Stage& writer = program_.at(uses.writers.front());
    const bool held = writer.level == FoldLevel::Prologue || writer.matmul();
    if (uses.readers.back() == stage && (last || !held)) queue.pop_front();
  }

  [[noreturn]] void fail(FaultKind kind, const std::string& subject, int64_t value, int64_t low, int64_t high) const {
    throw Fault{kind, program_.name, stage_->name, item_, subject, value, low, high};
  }

  // ---- movement ----

  std::vector<uint64_t> tiles(const AccessPattern& pattern, TensorId tensor) {
    uint64_t first = affine_address(pattern.origin, at_);
    if (const auto& indirect = pattern.origin.indirect) {
      const int64_t value = queues_[index(indirect->index)].front()[0].integer;
      if (value < indirect->low || value > indirect->high)
        fail(FaultKind::TileIndexRange, program_.at(indirect->index).name, value, indirect->low, indirect->high);
      first += static_cast<uint64_t>(value) / indirect->elems_per_tile * indirect->tile_stride;
    }
    std::vector<uint64_t> all;
    const auto count = static_cast<int64_t>(grid_of(program_.at(tensor), program_.tile).tiles());
    for (uint64_t y = 0; y < pattern.block_h; ++y)
      for (uint64_t x = 0; x < pattern.block_w; ++x) {
        const uint64_t tile = first + y * pattern.stride_h + x * pattern.stride_w;
        if (tile >= static_cast<uint64_t>(count))
          fail(FaultKind::TileAddress, program_.at(tensor).name, static_cast<int64_t>(tile), 0, count - 1);
        all.push_back(tile);
      }
    return all;
  }

  template <class Visit>
  void each_element(BufferId buffer, const std::vector<uint64_t>& tiles, TensorId tensor, Visit&& visit) {
    const TileShape shape = program_.tile;
    for (uint64_t t = 0; t < tiles.size(); ++t)
      for (uint64_t y = 0; y < shape.rows; ++y)
        for (uint64_t x = 0; x < shape.cols; ++x)
          visit(y * program_.width(buffer) + t * shape.cols + x, element(tensor, tiles[t], y, x));
  }

  void load() {
    const BufferId buffer = stage_->outs[0];
    const TensorId tensor = stage_->load()->tensor;
    Page page = blank(buffer);
    each_element(buffer, tiles(stage_->load()->pattern, tensor), tensor, [&](uint64_t at, const Number* from) {
      if (from) page[at] = *from;
    });
    queues_[index(buffer)].push_back(std::move(page));
  }

  void store() {
    const BufferId buffer = stage_->ins[0];
    const TensorId tensor = stage_->store()->tensor;
    const Page& page = queues_[index(buffer)].front();
    each_element(buffer, tiles(stage_->store()->pattern, tensor), tensor, [&](uint64_t at, Number* to) {
      if (to) *to = page[at];
    });
  }

  Page blank(BufferId buffer) const { return Page(program_.tile.rows * program_.width(buffer)); }

  // ---- bodies ----

  int64_t offset(uint32_t operand, const Point& point) {
    const ElemAccess& map = stage_->generic()->ins[operand];
    const BufferId page = stage_->ins[operand];
    int64_t at = affine_offset(map, point);
    if (map.indirect && map.indirect->operand != operand) {
      const int64_t value = number(map.indirect->operand, point).integer;
      check_index(stage_->ins[map.indirect->operand], value, map.indirect->modulus);
      at += map.indirect->stride * value;
    }
    const auto size = static_cast<int64_t>(program_.tile.rows * program_.width(page));
    if (at < 0 || at >= size) fail(FaultKind::PageOffset, program_.at(page).name, at, 0, size - 1);
    return at;
  }

  void check_index(BufferId page, int64_t value, uint64_t modulus) const {
    if (value < 0 || static_cast<uint64_t>(value) >= modulus)
      fail(FaultKind::IndexRange, program_.at(page).name, value, 0, static_cast<int64_t>(modulus) - 1);
  }

  Number number(uint32_t operand, const Point& point) {
    const int64_t at = offset(operand, point);
    const Number value = queues_[index(stage_->ins[operand])].front()[static_cast<size_t>(at)];
    const auto& term = stage_->generic()->ins[operand].indirect;
    if (term && term->operand == operand) check_index(stage_->ins[operand], value.integer, term->modulus);
    return value;
  }

  bool holds_at(const Pred& cond, const Point& point) {
    const int64_t bound = cond.by_operand ? number(static_cast<uint32_t>(cond.bound), point).integer : cond.bound;
    return (point[static_cast<size_t>(cond.axis)] < bound) != cond.at_least;
  }

  double real(NodeId id, const Point& point) {
    const Precision accumulator = real_accumulator(program_);
    const Node& what = stage_->generic()->body.at(id);
    if (const auto* n = std::get_if<OperandNode>(&what)) return node(accumulator, number(n->operand, point).real);
    if (const auto* n = std::get_if<ConstNode>(&what)) return node(accumulator, n->value);
    if (const auto* n = std::get_if<BinaryNode>(&what)) {
      const double left = real(n->left, point);
      return evaluate::binary(accumulator, n->op, left, real(n->right, point));
    }
    if (const auto* n = std::get_if<UnaryNode>(&what)) return evaluate::unary(accumulator, n->op, real(n->arg, point));
    if (const auto* n = std::get_if<RsqrtNode>(&what))
      return evaluate::rsqrt(accumulator, real(n->arg, point), n->eps_nano, n->over);
    const auto& n = std::get<SelectNode>(what);
    return real(holds_at(n.cond, point) ? n.then : n.otherwise, point);
  }

  int64_t integer(NodeId id, const Point& point) {
    const Node& what = stage_->generic()->body.at(id);
    if (const auto* n = std::get_if<OperandNode>(&what)) return number(n->operand, point).integer;
    if (const auto* n = std::get_if<ConstNode>(&what)) return static_cast<int64_t>(n->value);
    if (const auto* n = std::get_if<ShrNode>(&what)) return integer(n->arg, point) >> n->by;
    if (const auto* n = std::get_if<BinaryNode>(&what)) {
      const int64_t left = integer(n->left, point);
      return exact(n->op, left, integer(n->right, point));
    }
    const auto& n = std::get<SelectNode>(what);
    return integer(holds_at(n.cond, point) ? n.then : n.otherwise, point);
  }

  // 128 bits hold every answer; what 64 do not is a fault.
  int64_t exact(BinaryOp op, int64_t left, int64_t right) const {
    __extension__ using Wide = __int128;
    const Wide a = left, b = right;
    const std::string& page = program_.at(stage_->outs[0]).name;
    constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
    if (op == BinaryOp::FloorDiv && b == 0) fail(FaultKind::DivisionByZero, page, 0, 0, 0);
    Wide answer = 0;
    switch (op) {
      case BinaryOp::Add: answer = a + b; break;
      case BinaryOp::Sub: answer = a - b; break;
      case BinaryOp::Mul: answer = a * b; break;
      case BinaryOp::Min: answer = a < b ? a : b; break;
      case BinaryOp::Max: answer = a > b ? a : b; break;
      case BinaryOp::FloorDiv: answer = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); break;
    }
    if (answer < kLow || answer > kHigh) fail(FaultKind::Overflow, page, 0, kLow, kHigh);
    return static_cast<int64_t>(answer);
  }

  // ---- Generic ----

  void generic() {
    const Generic& g = *stage_->generic();
    Page page = blank(stage_->outs[0]);
    std::vector<Iter> outer, inner;
    for (const Iter& iter : g.iters) (iter.reduce ? inner : outer).push_back(iter);
    each_point(outer, 0, {}, [&](const Point& point) { land(page, point, value(inner, point)); });
    queues_[index(stage_->outs[0])].push_back(std::move(page));
  }

  template <class Visit>
  void each_point(const std::vector<Iter>& iters, size_t depth, Point point, Visit&& visit) {
    if (depth == iters.size()) return visit(point);
    for (uint64_t i = 0; i < iters[depth].extent; ++i) {
      point[static_cast<size_t>(iters[depth].axis)] = static_cast<int64_t>(i);
      each_point(iters, depth + 1, point, visit);
    }
  }

  Number value(const std::vector<Iter>& reduced, const Point& at) {
    const NodeId root = stage_->generic()->body.root();
    const bool integers = computes_integers(program_, *stage_);
    const std::optional<Pool> pool = stage_->generic()->pool();
    Number all;
    int64_t position = -1;
    bool first = true;
    each_point(reduced, 0, at, [&](const Point& point) {
      const Number one = integers ? of_integer(integer(root, point)) : Number{real(root, point), 0};
      const bool greater = integers ? one.integer > all.integer : one.real > all.real;
      if (first || (pool == Pool::ArgMax && greater)) {
        all = one;
        if (pool) position = point[static_cast<size_t>(reduced[0].axis)];
      } else if (pool != Pool::ArgMax) {
        const BinaryOp op = pool == Pool::Sum ? BinaryOp::Add : BinaryOp::Max;
        all = integers ? of_integer(exact(op, all.integer, one.integer))
                       : Number{evaluate::binary(real_accumulator(program_), op, all.real, one.real), 0};
      }
      first = false;
    });
    return pool == Pool::ArgMax ? result(of_integer(position), true) : result(all, integers);
  }

  // The value as the destination holds it.
  Number result(const Number& value, bool integers) const {
    const Buffer& page = program_.at(stage_->outs[0]);
    if (!is_integer(page.dtype)) return {node(page.dtype, value.real), 0};
    TW_CHECK(integers, "stage {} writes reals as integers", stage_->name);
    if (!holds(page.dtype, value.integer))
      fail(FaultKind::Overflow, page.name, value.integer, -int_max(page.dtype) - 1, int_max(page.dtype));
    return value;
  }

  void land(Page& page, const Point& point, const Number& value) const {
    const uint64_t width = program_.width(stage_->outs[0]);
    const auto r = static_cast<uint64_t>(point[0]), c = static_cast<uint64_t>(point[1]);
    switch (landing(*stage_->generic())) {
      case Landing::Point: page[r * width + c] = value; break;
      case Landing::AcrossRow:
        for (uint64_t x = 0; x < width; ++x) page[r * width + x] = value;
        break;
      case Landing::DownColumn:
        for (uint64_t y = 0; y < program_.tile.rows; ++y) page[y * width + c] = value;
        break;
    }
  }

  // ---- MatmulTiles ----

  void matmul(uint32_t stage, bool last) {
    const MatmulTiles& m = *stage_->matmul();
    const uint64_t rows = m.rows * uint64_t{program_.tile.rows}, cols = m.cols * uint64_t{program_.tile.cols};
    std::vector<Number>& sums = sums_[stage];
    if (at_[4] == 0) sums.assign(rows * cols, {});
    for (uint64_t i = 0; i < rows; ++i)
      for (uint64_t j = 0; j < cols; ++j)
        for (uint64_t k = 0; k < m.inner; ++k)
          add_term(sums[i * cols + j], in_page(0, m.inner / program_.tile.cols, i, k), in_page(1, m.cols, k, j));
    if (!last) return;
    Page page = blank(stage_->outs[0]);
    for (uint64_t i = 0; i < rows; ++i)
      for (uint64_t j = 0; j < cols; ++j)
        page[place(stage_->outs[0], m.cols, i, j)] = result(sums[i * cols + j], computes_integers(program_, *stage_));
    queues_[index(stage_->outs[0])].push_back(std::move(page));
  }

  void add_term(Number& sum, const Number& a, const Number& b) const {
    if (computes_integers(program_, *stage_)) {
      sum = of_integer(exact(BinaryOp::Add, sum.integer, exact(BinaryOp::Mul, a.integer, b.integer)));
    } else {
      const Precision f = real_accumulator(program_);
      const double term = evaluate::binary(f, BinaryOp::Mul, node(f, a.real), node(f, b.real));
      sum.real = evaluate::binary(f, BinaryOp::Add, sum.real, term);
    }
  }

  // Element (i, j) of a page of whole tiles, `across` to a tile row.
  [[nodiscard]] uint64_t place(BufferId buffer, uint64_t across, uint64_t i, uint64_t j) const {
    const TileShape shape = program_.tile;
    const uint64_t tile = i / shape.rows * across + j / shape.cols;
    return i % shape.rows * program_.width(buffer) + tile * shape.cols + j % shape.cols;
  }
  const Number& in_page(size_t in, uint64_t across, uint64_t i, uint64_t j) {
    const BufferId buffer = stage_->ins[in];
    return queues_[index(buffer)].front()[place(buffer, across, i, j)];
  }

  const Program& program_;
  Memory& memory_;
  std::vector<BufferUses> uses_;
  std::vector<std::deque<Page>> queues_;
  std::map<uint32_t, std::vector<Number>> tensors_, sums_;
  const Stage* stage_ = nullptr;
  LoopPoint at_{};
  uint64_t item_ = 0;
};

}  // namespace

Run run_naive(const Program& program, Memory& memory) {
  Run run;
  try {
    Naive(program, memory).run(run);
  } catch (const Fault& fault) {
    run.fault = fault;
  }
  return run;
}

}  // namespace tw::spatial::evaluate::testing
