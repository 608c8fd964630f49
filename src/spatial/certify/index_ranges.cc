#include "spatial/certify/index_ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "spatial/certify/fingerprint.h"

namespace tw::spatial {
namespace {

constexpr size_t kMostDemands = 8;  // of one page; more are rather forgotten than searched

using Range = std::optional<Interval>;

bool checks_itself(const ElemAccess& map, uint32_t operand) {
  return map.indirect && map.indirect->operand == operand && map.indirect->stride == 0;
}

Interval below(uint64_t modulus) { return {0, to_signed(modulus) - 1}; }

// ---- backwards ----

// The operands whose value the body takes at every point: those under no branch.
std::vector<uint32_t> always_read(const Expr& body) {
  std::vector<uint32_t> operands;
  std::vector<NodeId> open{body.root()};
  while (!open.empty()) {
    const Node& node = body.at(open.back());
    open.pop_back();
    if (const auto* n = std::get_if<OperandNode>(&node)) operands.push_back(n->operand);
    const auto* select = std::get_if<SelectNode>(&node);
    if (select && select->cond.by_operand) operands.push_back(static_cast<uint32_t>(select->cond.bound));
    if (select) continue;
    for (const NodeId child : children(node)) open.push_back(child);
  }
  return operands;
}

std::optional<int64_t> constant(const Expr& body, NodeId id) {
  const auto* n = std::get_if<ConstNode>(&body.at(id));
  if (!n || std::trunc(n->value) != n->value || std::abs(n->value) > 0x1p53) return std::nullopt;
  return static_cast<int64_t>(n->value);
}

// One step down the tree: what the child that is no constant must be for a sum or difference to be in want. Nothing
// where the node is neither, or has no such child.
struct Below {
  NodeId node = 0;
  Interval want;
};
std::optional<Below> undo(const Expr& body, const Node& node, Interval want) {
  const auto* n = std::get_if<BinaryNode>(&node);
  if (!n || (n->op != BinaryOp::Add && n->op != BinaryOp::Sub)) return std::nullopt;
  const std::optional<int64_t> left = constant(body, n->left), right = constant(body, n->right);
  if (left.has_value() == right.has_value()) return std::nullopt;
  const Interval at{left.value_or(right.value_or(0)), left.value_or(right.value_or(0))};
  if (n->op == BinaryOp::Add) return Below{left ? n->right : n->left, want - at};
  return left ? Below{n->right, at - want} : Below{n->left, want + at};
}

// Whether the map reads every element between its first and its last over the space.
bool dense(const Generic& generic, const ElemAccess& map) {
  std::array<std::pair<int64_t, int64_t>, kAxes> steps;  // (size of a step, the steps)
  for (int a = 0; a < kAxes; ++a)
    steps[static_cast<size_t>(a)] = {std::abs(map.coef[a]), to_signed(generic.extent(static_cast<Axis>(a))) - 1};
  std::sort(steps.begin(), steps.end());
  int64_t length = 1;
  for (const auto& [size, count] : steps) {
    if (count > 0 && size > length) return false;
    length = saturated_add(length, saturated_mul(size, count));
  }
  return true;
}

class Backwards {
 public:
  Backwards(const Program& program, IndexRanges& ranges) : program_(program), ranges_(ranges) {}

  void stage(const Stage& stage) {
    if (const AccessPattern* pattern = stage.pattern()) {
      if (!pattern->origin.indirect) return;
      const IndirectTile& index = *pattern->origin.indirect;
      demand(index.index, {0, 0}, {index.low, index.high});
      decides(index.index);
      return;
    }
    const Generic* generic = stage.generic();
    if (!generic) return;
    mark(stage, *generic);
    of_indices(stage, *generic);
    of_result(stage, *generic);
  }

 private:
  void decides(BufferId page) { ranges_.decides[index(page)] = true; }

  void demand(BufferId page, Interval where, Interval value) {
    std::vector<Demand>& all = ranges_.demands[index(page)];
    for (Demand& have : all)
      if (have.where == where) {
        have.value = meet(have.value, value);
        return;
      }
    if (all.size() < kMostDemands) all.push_back({where, value});
  }

  // What an index, a bound or a deciding page is computed from.
  void mark(const Stage& stage, const Generic& generic) {
    for (const ElemAccess& map : generic.ins)
      if (map.indirect) decides(stage.ins[map.indirect->operand]);
    const OperandUses used = operand_uses(generic.body);
    for (const uint32_t operand : used.bounds) decides(stage.ins[operand]);
    if (!ranges_.decides[index(stage.outs[0])] || !computes_integers(program_, stage)) return;
    for (const uint32_t operand : used.values) decides(stage.ins[operand]);
  }

  // An operand that is read at every point checks its index at every point.
  void of_indices(const Stage& stage, const Generic& generic) {
    for (const uint32_t operand : always_read(generic.body)) {
      const auto& term = generic.ins[operand].indirect;
      if (!term) continue;
      const ElemAccess& by = generic.ins[term->operand];
      if (by.indirect && !checks_itself(by, term->operand)) continue;
      if (dense(generic, by)) demand(stage.ins[term->operand], affine_range(generic, by), below(term->modulus));
    }
  }

  // What is demanded of a result that differs from its one operand by a constant, the operand has to meet. A sum that
  // wraps is told apart by the same demand: adding a constant is one to one on the numbers of a precision, and the only
  // ones that land in the demanded range are those that lie in it without wrapping. Of a product that is not so.
  void of_result(const Stage& stage, const Generic& generic) {
    if (!computes_integers(program_, stage) || generic.pool()) return;
    const Precision made = program_.at(stage.outs[0]).dtype;
    const Interval written = affine_range(generic, ident(static_cast<int64_t>(program_.width(stage.outs[0]))));
    for (const Demand& have : std::vector<Demand>(ranges_.demands[index(stage.outs[0])])) {
      if (!have.where.contains(written)) continue;
      Below at{generic.body.root(), meet(have.value, range_of(made))};
      while (const std::optional<Below> next = undo(generic.body, generic.body.at(at.node), at.want)) at = *next;
      const auto* leaf = std::get_if<OperandNode>(&generic.body.at(at.node));
      if (!leaf || !range_of(made).contains(at.want)) continue;
      const ElemAccess& map = generic.ins[leaf->operand];
      const BufferId page = stage.ins[leaf->operand];
      if ((map.indirect && !checks_itself(map, leaf->operand)) || !dense(generic, map)) continue;
      if (bytes_of(program_.at(page).dtype) <= bytes_of(made)) demand(page, affine_range(generic, map), at.want);
    }
  }

  const Program& program_;
  IndexRanges& ranges_;
};

// ---- across: what is loaded twice is the same twice ----

// A value is loaded and checked once a consumer, so the bounds that one copy meets hold for every other. Not of a
// tensor that the section itself changes, nor where data decides the address.
void share_demands(const Program& program, IndexRanges& ranges) {
  std::unordered_map<uint64_t, std::vector<BufferId>> copies;
  for (const Stage& stage : program.stages) {
    const Load* load = stage.load();
    if (!load || load->pattern.origin.indirect || program.at(load->tensor).result()) continue;
    if (!is_integer(program.at(load->tensor).dtype)) continue;
    Fingerprint same;
    same.add(uint64_t{index(load->tensor)});
    same.add(load->pattern);
    copies[same.low()].push_back(stage.outs[0]);
  }
  for (const auto& [content, pages] : copies) {
    if (pages.size() < 2) continue;
    std::vector<Demand> all;
    for (const BufferId page : pages)
      for (const Demand& demand : ranges.demands[index(page)])
        if (all.size() < kMostDemands && std::find(all.begin(), all.end(), demand) == all.end()) all.push_back(demand);
    for (const BufferId page : pages) ranges.demands[index(page)] = all;
  }
}

// ---- forwards ----

class Forwards {
 public:
  Forwards(const Program& program, IndexRanges& ranges)
      : program_(program), ranges_(ranges), tables_(program.tensors.size()), looked_(program.tensors.size()) {}

  void stage(uint32_t i, const std::vector<BufferUses>& uses, const std::vector<bool>& malformed) {
    const Stage& stage = program_.stages[i];
    if (stage.outs.empty() || !is_integer(program_.at(stage.outs[0]).dtype)) return;
    const BufferId page = stage.outs[0];
    Range range;
    if (const Load* load = stage.load()) range = table(load->tensor);
    const Generic* generic = stage.generic();
    if (generic && !malformed[i]) {
      range = result(stage, *generic);
      ranges_.results[i] = range;
    }
    if (const std::optional<Carry> carry = carry_of(program_, page, uses[index(page)])) count(i, *carry, malformed);
    if (!range || uses[index(page)].writers.size() > 1) return;
    ranges_.values[index(page)] = meet(hull(*range, {0, 0}), range_of(program_.at(page).dtype));
  }

 private:
  // The values of a table that nothing else fills.
  Range table(TensorId id) {
    if (looked_[index(id)]) return tables_[index(id)];
    looked_[index(id)] = true;
    const Tensor& tensor = program_.at(id);
    Range& range = tables_[index(id)];
    if (tensor.role != TensorRole::Param) return range;
    if (std::holds_alternative<ZeroInit>(tensor.init)) range = Interval{0, 0};
    if (const auto* one = std::get_if<IntegerInit>(&tensor.init)) range = Interval{one->value, one->value};
    if (const auto* many = std::get_if<IntegerValues>(&tensor.init); many && many->values && !many->values->empty()) {
      const auto [least, most] = std::minmax_element(many->values->begin(), many->values->end());
      range = Interval{*least, *most};
    }
    return range;
  }

  // A carry that its update adds a constant to counts the blocks: it is what it started as, so many steps on.
  void count(uint32_t i, const Carry& carry, const std::vector<bool>& malformed) {
    Range& values = ranges_.values[index(carry.buffer)];
    if (StageId{i} == carry.update && values) ranges_.results[i] = values;
    if (StageId{i} != carry.start || !ranges_.results[i] || malformed[index(carry.update)]) return;
    const std::optional<int64_t> step = step_of(carry);
    if (!step) return;
    const Interval steps = Interval{*step, *step} * Interval{0, to_signed(program_.work.plan.num_blocks)};
    values = hull(*ranges_.results[i], {0, 0}) + steps;
  }

  std::optional<int64_t> step_of(const Carry& carry) const {
    const Stage& update = program_.at(carry.update);
    const Generic* generic = update.generic();
    if (!generic || generic->pool() || !computes_integers(program_, update)) return std::nullopt;
    const std::optional<Below> below = undo(generic->body, generic->body.at(generic->body.root()), {0, 0});
    const auto* n = below ? std::get_if<OperandNode>(&generic->body.at(below->node)) : nullptr;
    const bool same = n && update.ins[n->operand] == carry.buffer && !generic->ins[n->operand].indirect;
    // A constant less the carry is no step.
    const auto* root = std::get_if<BinaryNode>(&generic->body.at(generic->body.root()));
    if (!same || (root->op == BinaryOp::Sub && below->node == root->right)) return std::nullopt;
    return -below->want.low;
  }

  Range operand(const Stage& stage, const Generic& generic, uint32_t operand) const {
    const ElemAccess& map = generic.ins[operand];
    const bool moved = map.indirect && !checks_itself(map, operand);
    Range range = moved ? ranges_.values[index(stage.ins[operand])]
                        : ranges_.read(stage.ins[operand], affine_range(generic, map));
    const Precision held = program_.at(stage.ins[operand]).dtype;
    if (!range && is_integer(held)) range = range_of(held);
    if (checks_itself(map, operand)) range = meet(range.value_or(everything()), below(map.indirect->modulus));
    return range;
  }

  static Range binary(BinaryOp op, Range left, Range right) {
    const Interval a = left.value_or(everything()), b = right.value_or(everything());
    // Of min and max one known side is something known.
    if (op == BinaryOp::Min && (left || right))
      return Interval{left && right ? std::min(a.low, b.low) : kLeast, std::min(a.high, b.high)};
    if (op == BinaryOp::Max && (left || right))
      return Interval{std::max(a.low, b.low), left && right ? std::max(a.high, b.high) : kMost};
    if (!left || !right) return std::nullopt;
    if (op == BinaryOp::Add) return a + b;
    if (op == BinaryOp::Sub) return a - b;
    if (op == BinaryOp::Mul) return a * b;
    if (op != BinaryOp::FloorDiv || b.low < 1) return std::nullopt;
    return Interval{std::min(floor_quotient(a.low, b.low), floor_quotient(a.low, b.high)),
                    std::max(floor_quotient(a.high, b.low), floor_quotient(a.high, b.high))};
  }

  Range body(const Stage& stage, const Generic& generic) const {
    std::vector<Range> known(generic.body.nodes().size());
    for (NodeId i = 0; i < known.size(); ++i) {
      const Node& node = generic.body.at(i);
      if (const auto* n = std::get_if<OperandNode>(&node)) known[i] = operand(stage, generic, n->operand);
      if (std::holds_alternative<ConstNode>(node))
        if (const auto value = constant(generic.body, i)) known[i] = Interval{*value, *value};
      if (const auto* n = std::get_if<BinaryNode>(&node)) known[i] = binary(n->op, known[n->left], known[n->right]);
      if (const auto* n = std::get_if<ShrNode>(&node); n && known[n->arg])
        known[i] = Interval{known[n->arg]->low >> n->by, known[n->arg]->high >> n->by};
      if (const auto* n = std::get_if<SelectNode>(&node); n && known[n->then] && known[n->otherwise])
        known[i] = hull(*known[n->then], *known[n->otherwise]);
    }
    return known.back();
  }

  Range result(const Stage& stage, const Generic& generic) const {
    uint64_t points = 1;
    for (const Iter& iter : generic.iters)
      if (iter.reduce) points = static_cast<uint64_t>(saturated_mul(to_signed(points), to_signed(iter.extent)));
    if (generic.pool() == Pool::ArgMax) return Interval{0, to_signed(points) - 1};
    const Range range = computes_integers(program_, stage) ? body(stage, generic) : std::nullopt;
    if (!range || generic.pool() != Pool::Sum) return range;
    return *range * Interval{to_signed(points), to_signed(points)};
  }

  const Program& program_;
  IndexRanges& ranges_;
  std::vector<Range> tables_;
  std::vector<bool> looked_;
};

}  // namespace

Interval affine_range(const Generic& generic, const ElemAccess& map) {
  Interval range{map.base, map.base};
  for (int a = 0; a < kAxes; ++a)
    range =
        range + Interval{map.coef[a], map.coef[a]} * Interval{0, to_signed(generic.extent(static_cast<Axis>(a))) - 1};
  return range;
}

Interval range_of(Precision precision) { return {-int_max(precision) - 1, int_max(precision)}; }

std::optional<Interval> IndexRanges::read(BufferId page, Interval where) const {
  std::optional<Interval> range = values[index(page)];
  for (const Demand& demand : demands[index(page)])
    if (demand.where.contains(where)) range = meet(range.value_or(everything()), demand.value);
  return range;
}

IndexRanges index_ranges(const Program& program, const std::vector<BufferUses>& uses,
                         const std::vector<bool>& malformed) {
  IndexRanges ranges;
  ranges.demands.resize(program.buffers.size());
  ranges.values.resize(program.buffers.size());
  ranges.results.resize(program.stages.size());
  ranges.decides.resize(program.buffers.size());
  Backwards backwards(program, ranges);
  for (size_t i = program.stages.size(); i-- > 0;)
    if (!malformed[i]) backwards.stage(program.stages[i]);
  share_demands(program, ranges);
  Forwards forwards(program, ranges);
  for (uint32_t i = 0; i < program.stages.size(); ++i) forwards.stage(i, uses, malformed);
  return ranges;
}

}  // namespace tw::spatial
