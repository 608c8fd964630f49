#include "spatial/evaluate/nest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "spatial/evaluate/arithmetic.h"
#include "spatial/evaluate/codec.h"

namespace tw::spatial::evaluate {
namespace {

constexpr size_t number(Axis axis) { return static_cast<size_t>(axis); }

}  // namespace

// ---- compiling ----

template <class Lanes>
Nest<Lanes>::Nest(const Program& program, const Stage& stage)
    : lanes_(real_accumulator(program)),
      body_(stage.generic()->body),
      pool_(stage.generic()->pool()),
      landing_(landing(*stage.generic())),
      out_page_(stage.outs[0]),
      out_dtype_(program.at(stage.outs[0]).dtype),
      code_bytes_(bytes_of(out_dtype_)),
      width_(program.width(stage.outs[0])),
      tile_rows_(program.tile.rows) {
  const Generic& generic = *stage.generic();
  for (const Iter& iter : generic.iters) (iter.reduce ? reduced_ : parallel_).push_back({iter.axis, iter.extent});
  choose_strip(generic);
  compile_reads(program, stage, generic);
  find_contraction();

  slot_of_.resize(body_.nodes().size());
  slots_.resize(assign_slots(body_, body_.root(), 0) * kStrip);
  for (NodeId i = 0; i < body_.nodes().size(); ++i)
    if (const auto* constant = std::get_if<ConstNode>(&body_.at(i))) {
      slot_of_[i] = static_cast<uint32_t>(constants_.size() / kStrip);
      constants_.resize(constants_.size() + kStrip, lanes_.constant(constant->value));
    }
  indices_.resize(reads_.size() * kStrip);
  offsets_.resize(kStrip);
  folded_.resize(kStrip);
  positions_.resize(kStrip);
  codes_.resize(kStrip * sizeof(int64_t));
}

template <class Lanes>
void Nest<Lanes>::choose_strip(const Generic& generic) {
  // Columns are neighbours in a page. Where they are few, the longest loop that may be a strip.
  constexpr uint64_t kFew = 16;
  uint64_t longest = 0;
  const auto offer = [&](const Loop& loop, bool reduced) {
    if (loop.extent <= longest) return;
    longest = loop.extent;
    strip_ = loop.axis;
    strip_reduced_ = reduced;
  };
  for (const Loop& loop : parallel_)
    if (loop.axis == Axis::Col) offer(loop, false);
  if (longest >= kFew || generic.iters.empty()) return;
  for (const Loop& loop : parallel_) offer(loop, false);
  if (!reduced_.empty()) offer(reduced_.back(), true);
}

template <class Lanes>
void Nest<Lanes>::compile_reads(const Program& program, const Stage& stage, const Generic& generic) {
  for (uint32_t i = 0; i < generic.ins.size(); ++i) {
    const ElemAccess& map = generic.ins[i];
    const BufferId page = stage.ins[i];
    reads_.push_back({.page = page,
                      .dtype = program.at(page).dtype,
                      .size = static_cast<int64_t>(program.width(page) * program.tile.rows),
                      .map = map,
                      .guard = map.indirect && map.indirect->operand == i});
  }
  for (Read& read : reads_) {
    const Read* at = &read;
    while (at->map.of(strip_) == 0 && at->map.indirect && !at->guard) at = &reads_[at->map.indirect->operand];
    read.uniform = at->map.of(strip_) == 0;
  }
  uint64_t points = 1;
  for (const Iter& iter : generic.iters) points *= iter.extent;
  for (Read& read : reads_) {
    read.widen = !lanes_.in_place(read.dtype) && points >= 2 * static_cast<uint64_t>(read.size);
    if (read.widen) read.wide.resize(static_cast<size_t>(read.size));
  }
}

template <class Lanes>
void Nest<Lanes>::find_contraction() {
  const auto* root = std::get_if<BinaryNode>(&body_.at(body_.root()));
  sums_products_ = pool_ == Pool::Sum && !strip_reduced_ && root && root->op == BinaryOp::Mul;
  if (!sums_products_) return;
  const auto* left = std::get_if<OperandNode>(&body_.at(root->left));
  const auto* right = std::get_if<OperandNode>(&body_.at(root->right));
  if (!left || !right) return;
  const auto there = [&](uint32_t operand) {
    const Read& read = reads_[operand];
    return !read.map.indirect && (read.widen || lanes_.in_place(read.dtype));
  };
  if (!there(left->operand) || !there(right->operand)) return;
  const auto fits = [&](uint32_t one, uint32_t many) {
    return reads_[one].uniform && reads_[many].map.of(strip_) == 1;
  };
  if (fits(left->operand, right->operand)) contraction_ = {left->operand, right->operand};
  if (fits(right->operand, left->operand)) contraction_ = {right->operand, left->operand};
}

// Answers how many strips the subtree keeps, counted from the first slot.
template <class Lanes>
uint32_t Nest<Lanes>::assign_slots(const Expr& body, NodeId node, uint32_t slot) {
  slot_of_[node] = slot;
  uint32_t used = slot + 1;
  // A branch of a select lands where the select does; a second operand waits beside the first.
  const bool side_by_side = std::holds_alternative<BinaryNode>(body.at(node));
  uint32_t next = slot;
  for (const NodeId child : children(body.at(node))) {
    used = std::max(used, assign_slots(body, child, next));
    if (side_by_side) ++next;
  }
  return used;
}

// ---- loops ----

template <class Lanes>
std::optional<StageFault> Nest<Lanes>::run(std::span<const std::byte* const> pages, std::byte* out) {
  pages_ = pages;
  out_ = out;
  for (size_t i = 0; i < reads_.size(); ++i)
    if (Read& read = reads_[i]; read.widen) lanes_.load(read.dtype, pages[i], 0, 1, read.wide.data(), read.wide.size());
  for (const size_t limit : {kStrip, size_t{1}}) {
    limit_ = limit;
    fault_.reset();
    point_ = {};
    if (parallel(0, 1)) return std::nullopt;
  }
  return fault_;
}

template <class Lanes>
bool Nest<Lanes>::parallel(size_t depth, size_t n) {
  if (depth == parallel_.size()) return fold(n);
  const Loop loop = parallel_[depth];
  const bool strip = loop.axis == strip_ && !strip_reduced_;
  const uint64_t step = strip ? limit_ : 1;
  for (uint64_t at = 0; at < loop.extent; at += step) {
    point_[number(loop.axis)] = static_cast<int64_t>(at);
    if (!parallel(depth + 1, strip ? std::min(step, loop.extent - at) : n)) return false;
  }
  return true;
}

template <class Lanes>
bool Nest<Lanes>::fold(size_t n) {
  if (!pool_) {
    const Value* values = eval(body_.root(), 0, n);
    return !fault_ && land(values, n);
  }
  // The first term of a sum is taken as it is: what changes no term, -0 not either, is -0.
  std::fill_n(folded_.begin(), n, -Value{});
  for (const Loop& loop : reduced_) point_[number(loop.axis)] = 0;
  if (!reduced(0, n, true)) return false;
  return pool_ == Pool::ArgMax ? land_position(n) : land(folded_.data(), n);
}

// n: points of the parallel strip.
template <class Lanes>
bool Nest<Lanes>::reduced(size_t depth, size_t n, bool first) {
  const Loop loop = reduced_[depth];
  const bool last = depth + 1 == reduced_.size();
  if (last && contraction_ && limit_ > 1) return contract(loop, n);
  const uint64_t step = strip_reduced_ && last ? limit_ : 1;
  for (uint64_t at = 0; at < loop.extent; at += step) {
    point_[number(loop.axis)] = static_cast<int64_t>(at);
    if (!last) {
      if (!reduced(depth + 1, n, first)) return false;
    } else {
      if (sums_products_) {
        if (!take_product(n)) return false;
        continue;
      }
      const size_t count = strip_reduced_ ? std::min(step, loop.extent - at) : n;
      const Value* values = eval(body_.root(), 0, count);
      if (fault_ || !take(values, count, first)) return false;
    }
    first = false;
  }
  return true;
}

// Folds a strip: along it when the strip axis is reduced, lane by lane when not.
template <class Lanes>
bool Nest<Lanes>::take(const Value* values, size_t n, bool first) {
  if (pool_ == Pool::ArgMax) return take_position(values, n, first);
  if (pool_ == Pool::Sum) {
    return check(strip_reduced_ ? lanes_.add_up(values, n, folded_[0])
                                : lanes_.binary(BinaryOp::Add, folded_.data(), values, folded_.data(), n));
  }
  if (!strip_reduced_) {
    if (first) std::copy_n(values, n, folded_.begin());
    return first || check(lanes_.binary(BinaryOp::Max, folded_.data(), values, folded_.data(), n));
  }
  Value most = first ? values[0] : folded_[0];
  for (size_t i = first ? 1 : 0; i < n; ++i)
    if (!std::isnan(values[i]) && !(most > values[i])) most = values[i];
  folded_[0] = most;
  return true;
}

// A product goes to the sums without a strip of its own.
template <class Lanes>
bool Nest<Lanes>::take_product(size_t n) {
  const auto& root = std::get<BinaryNode>(body_.at(body_.root()));
  const Value* left = eval(root.left, 0, n);
  if (fault_) return false;
  const Value* right = eval(root.right, 0, n);
  return !fault_ && check(lanes_.add_products(left, right, folded_.data(), n));
}

// The whole of a reduced loop at once. Maps are affine: what is inside at both ends is inside.
template <class Lanes>
bool Nest<Lanes>::contract(const Loop& loop, size_t n) {
  const auto [one, many] = *contraction_;
  Place a, b;
  for (const uint64_t at : {loop.extent - 1, uint64_t{0}}) {
    point_[number(loop.axis)] = static_cast<int64_t>(at);
    if (!locate(one, 0, 1, a) || !locate(many, 0, n, b)) return false;
  }
  return check(lanes_.contract(elements(one) + a.first, reads_[one].map.of(loop.axis), elements(many) + b.first,
                               reads_[many].map.of(loop.axis), folded_.data(), loop.extent, n));
}

template <class Lanes>
bool Nest<Lanes>::take_position(const Value* values, size_t n, bool first) {
  const int64_t position = point_[number(reduced_[0].axis)];
  for (size_t i = 0; i < n; ++i) {
    const size_t lane = strip_reduced_ ? 0 : i;
    const bool seed = first && (!strip_reduced_ || i == 0);
    if (!seed && !(values[i] > folded_[lane])) continue;
    folded_[lane] = values[i];
    positions_[lane] = position + static_cast<int64_t>(strip_reduced_ ? i : 0);
  }
  return true;
}

// ---- results ----

template <class Lanes>
bool Nest<Lanes>::land(const Value* values, size_t n) {
  const size_t count = strip_reduced_ ? 1 : n;
  return place_codes(count, [&](std::byte* codes) {
    if (lanes_.store(out_dtype_, values, codes, count)) return true;
    if constexpr (std::is_same_v<Lanes, Integers>) return overflowed(values, count);
    return false;
  });
}

template <class Lanes>
bool Nest<Lanes>::land_position(size_t n) {
  const size_t count = strip_reduced_ ? 1 : n;
  return place_codes(count, [&](std::byte* codes) {
    return integers_.store(out_dtype_, positions_.data(), codes, count) || overflowed(positions_.data(), count);
  });
}

template <class Lanes>
bool Nest<Lanes>::overflowed(const int64_t* values, size_t n) {
  const int64_t* value = std::find_if(values, values + n, [&](int64_t v) { return !holds(out_dtype_, v); });
  return fail(FaultKind::Overflow, out_page_, *value, -int_max(out_dtype_) - 1, int_max(out_dtype_));
}

// store(codes) writes the codes of n results in a row; here they come to where the space says.
template <class Lanes>
template <class Store>
bool Nest<Lanes>::place_codes(size_t n, Store&& store) {
  const auto row = static_cast<uint64_t>(point_[number(Axis::Row)]);
  const auto col = static_cast<uint64_t>(point_[number(Axis::Col)]);
  const bool along = n == 1 || strip_ == Axis::Col;  // the results are neighbours
  switch (landing_) {
    case Landing::Point: {
      if (along) return store(out_ + (row * width_ + col) * code_bytes_);
      if (!store(codes_.data())) return false;
      for (size_t i = 0; i < n; ++i)
        std::memcpy(out_ + ((row + i) * width_ + col) * code_bytes_, codes_.data() + i * code_bytes_, code_bytes_);
      return true;
    }
    case Landing::AcrossRow: {
      if (!store(codes_.data())) return false;
      for (size_t i = 0; i < n; ++i)
        for (uint64_t c = 0; c < width_; ++c)
          std::memcpy(out_ + ((row + i) * width_ + c) * code_bytes_, codes_.data() + i * code_bytes_, code_bytes_);
      return true;
    }
    case Landing::DownColumn: break;
  }
  std::byte* first = out_ + col * code_bytes_;
  if (!store(first)) return false;
  for (uint64_t r = 1; r < tile_rows_; ++r) std::memcpy(first + r * width_ * code_bytes_, first, n * code_bytes_);
  return true;
}

// ---- strips ----

template <class Lanes>
auto Nest<Lanes>::eval(NodeId id, size_t lane, size_t n) -> const Value* {
  Value* out = slots_.data() + slot_of_[id] * kStrip + lane;
  const Node& node = body_.at(id);
  if (const auto* o = std::get_if<OperandNode>(&node)) return read(o->operand, lane, n, out);
  if (std::holds_alternative<ConstNode>(node)) return constants_.data() + slot_of_[id] * kStrip;
  if (const auto* b = std::get_if<BinaryNode>(&node)) {
    const Value* left = eval(b->left, lane, n);
    if (fault_) return out;
    const Value* right = eval(b->right, lane, n);
    if (!fault_) check(lanes_.binary(b->op, left, right, out, n));
    return out;
  }
  if (const auto* s = std::get_if<SelectNode>(&node)) return select(*s, lane, n, out);
  const Value* argument = eval(*children(node).begin(), lane, n);
  if (fault_) return out;
  if constexpr (std::is_same_v<Lanes, Integers>) {
    if (const auto* s = std::get_if<ShrNode>(&node)) lanes_.shift_right(argument, s->by, out, n);
  } else {
    if (const auto* u = std::get_if<UnaryNode>(&node)) lanes_.unary(u->op, argument, out, n);
    if (const auto* r = std::get_if<RsqrtNode>(&node)) lanes_.rsqrt(argument, r->eps_nano, r->over, out, n);
  }
  return out;
}

template <class Lanes>
auto Nest<Lanes>::read(uint32_t operand, size_t lane, size_t n, Value* out) -> const Value* {
  const Read& read = reads_[operand];
  Place place;
  if (!locate(operand, lane, n, place)) return out;
  if (read.guard) {
    integers(operand, lane, n);
    if (fault_) return out;
  }
  const std::byte* page = pages_[operand];
  if (place.gathered) {
    lanes_.gather(read.dtype, page, offsets_.data(), out, n);
    return out;
  }
  if (place.step == 1 || n == 1) {
    if (const Value* there = elements(operand)) return there + place.first;
  }
  lanes_.load(read.dtype, page, place.first, place.step, out, n);
  return out;
}

template <class Lanes>
auto Nest<Lanes>::select(const SelectNode& node, size_t lane, size_t n, Value* out) -> const Value* {
  const Pred& cond = node.cond;
  int64_t bound = cond.bound;
  if (cond.by_operand) {
    const auto operand = static_cast<uint32_t>(cond.bound);
    const int64_t* bounds = integers(operand, lane, n);
    if (fault_) return out;
    if (!reads_[operand].uniform) return runs(node, bounds, lane, n, out);
    bound = bounds[0];
  }
  if (cond.axis != strip_)
    return eval((point_[number(cond.axis)] < bound) != cond.at_least ? node.then : node.otherwise, lane, n);
  const int64_t start = axis_value(strip_, lane);
  const uint64_t below =
      bound <= start ? 0
                     : std::min(static_cast<uint64_t>(n), static_cast<uint64_t>(bound) - static_cast<uint64_t>(start));
  return cond.at_least ? join(node.otherwise, node.then, lane, n, below, out)
                       : join(node.then, node.otherwise, lane, n, below, out);
}

template <class Lanes>
auto Nest<Lanes>::join(NodeId head, NodeId tail, size_t lane, size_t n, size_t split, Value* out) -> const Value* {
  if (split == n) return eval(head, lane, n);
  if (split == 0) return eval(tail, lane, n);
  const Value* first = eval(head, lane, split);
  if (fault_) return out;
  if (first != out) std::copy_n(first, split, out);
  const Value* second = eval(tail, lane + split, n - split);
  if (!fault_ && second != out + split) std::copy_n(second, n - split, out + split);
  return out;
}

template <class Lanes>
auto Nest<Lanes>::runs(const SelectNode& node, const int64_t* bounds, size_t lane, size_t n, Value* out)
    -> const Value* {
  const auto taken = [&](size_t i) { return (axis_value(node.cond.axis, lane + i) < bounds[i]) != node.cond.at_least; };
  for (size_t begin = 0; begin < n;) {
    const bool then = taken(begin);
    size_t end = begin + 1;
    while (end < n && taken(end) == then) ++end;
    const Value* values = eval(then ? node.then : node.otherwise, lane + begin, end - begin);
    if (fault_) return out;
    if (values != out + begin) std::copy_n(values, end - begin, out + begin);
    begin = end;
  }
  return out;
}

// ---- reads ----

template <class Lanes>
const int64_t* Nest<Lanes>::integers(uint32_t operand, size_t lane, size_t n) {
  const Read& read = reads_[operand];
  const size_t count = read.uniform ? 1 : n;
  int64_t* out = indices_.data() + operand * kStrip + lane;
  Place place;
  if (!locate(operand, lane, n, place)) return out;
  if (place.gathered)
    integers_.gather(read.dtype, pages_[operand], offsets_.data(), out, count);
  else
    integers_.load(read.dtype, pages_[operand], place.first, place.step, out, count);
  if (read.guard) check_indices(operand, out, count, read.map.indirect->modulus);
  return out;
}

template <class Lanes>
bool Nest<Lanes>::locate(uint32_t operand, size_t lane, size_t n, Place& place) {
  const Read& read = reads_[operand];
  const auto outside = [&](int64_t offset) { return offset < 0 || offset >= read.size; };
  place.step = read.map.of(strip_);
  place.first = affine_offset(read.map, point_) + place.step * static_cast<int64_t>(lane);
  if (read.map.indirect && !read.guard) {
    const IndirectTerm& term = *read.map.indirect;
    const int64_t* values = integers(term.operand, lane, n);
    const bool one = reads_[term.operand].uniform;
    if (fault_ || !check_indices(term.operand, values, one ? 1 : n, term.modulus)) return false;
    if (one) {
      place.first += term.stride * values[0];
    } else {
      place.gathered = true;
      for (size_t i = 0; i < n; ++i) {
        offsets_[i] = place.first + place.step * static_cast<int64_t>(i) + term.stride * values[i];
        if (outside(offsets_[i])) return fail(FaultKind::PageOffset, read.page, offsets_[i], 0, read.size - 1);
      }
      return true;
    }
  }
  const int64_t last = place.first + place.step * static_cast<int64_t>(n - 1);
  if (!outside(place.first) && !outside(last)) return true;
  return fail(FaultKind::PageOffset, read.page, outside(place.first) ? place.first : last, 0, read.size - 1);
}

template <class Lanes>
bool Nest<Lanes>::check_indices(uint32_t operand, const int64_t* values, size_t n, uint64_t modulus) {
  for (size_t i = 0; i < n; ++i)
    if (values[i] < 0 || static_cast<uint64_t>(values[i]) >= modulus)
      return fail(FaultKind::IndexRange, reads_[operand].page, values[i], 0, static_cast<int64_t>(modulus - 1));
  return true;
}

template <class Lanes>
auto Nest<Lanes>::elements(uint32_t operand) const -> const Value* {
  const Read& read = reads_[operand];
  if (read.widen) return read.wide.data();
  return lanes_.in_place(read.dtype) ? reinterpret_cast<const Value*>(pages_[operand]) : nullptr;
}

template <class Lanes>
int64_t Nest<Lanes>::axis_value(Axis axis, size_t lane) const {
  return point_[number(axis)] + (axis == strip_ ? static_cast<int64_t>(lane) : 0);
}

template <class Lanes>
bool Nest<Lanes>::fail(FaultKind kind, BufferId page, int64_t value, int64_t low, int64_t high) {
  fault_ = StageFault{kind, page, value, low, high};
  return false;
}

template <class Lanes>
bool Nest<Lanes>::check(Trouble trouble) {
  if (trouble == Trouble::None) return true;
  if (trouble == Trouble::DivisionByZero) return fail(FaultKind::DivisionByZero, out_page_, 0, 0, 0);
  return fail(FaultKind::Overflow, out_page_, 0, std::numeric_limits<int64_t>::min(),
              std::numeric_limits<int64_t>::max());
}

template class Nest<Singles>;
template class Nest<Doubles>;
template class Nest<Integers>;

AnyNest compile_nest(const Program& program, const Stage& stage) {
  if (computes_integers(program, stage)) return Nest<Integers>(program, stage);
  if (real_accumulator(program) == Precision::F32) return Nest<Singles>(program, stage);
  return Nest<Doubles>(program, stage);
}

}  // namespace tw::spatial::evaluate
