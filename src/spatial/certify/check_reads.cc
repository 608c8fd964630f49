#include <array>

#include "spatial/certify/checks.h"

namespace tw::spatial {
namespace {

// A part of the space, and by axis whether bounds from data cut it further: then it is not known to be read to its
// ends.
struct Box {
  std::array<Interval, kAxes> axes;
  std::array<bool, kAxes> cut_by_data{};
};

Box whole_space(const Generic& generic) {
  Box box;
  for (int a = 0; a < kAxes; ++a)
    box.axes.at(static_cast<size_t>(a)) = {0, to_signed(generic.extent(static_cast<Axis>(a))) - 1};
  return box;
}

// The part of a box where a predicate holds, or does not. Both are boxes: one axis is cut.
Box where(Box box, const Pred& pred, bool holds) {
  if (pred.by_operand) {
    box.cut_by_data.at(static_cast<size_t>(pred.axis)) = true;
    return box;
  }
  Interval& axis = box.axes.at(static_cast<size_t>(pred.axis));
  axis = pred.at_least == holds ? meet(axis, {pred.bound, kMost})
                                : meet(axis, {kLeast, pred.bound == kLeast ? kLeast : pred.bound - 1});
  return box;
}

bool empty(const Box& box) {
  for (const Interval& axis : box.axes)
    if (axis.empty()) return true;
  return false;
}

Interval offsets(const ElemAccess& map, const Box& box) {
  Interval range{map.base, map.base};
  for (size_t a = 0; a < kAxes; ++a) range = range + Interval{map.coef[a], map.coef[a]} * box.axes[a];
  return range;
}

// Whether the map follows an axis that data cuts.
bool ends_by_data(const ElemAccess& map, const Box& box) {
  for (size_t a = 0; a < kAxes; ++a)
    if (map.coef[a] != 0 && box.cut_by_data[a]) return true;
  return false;
}

// The reads of one loop nest: walks its body with the part of the space that each node is evaluated at.
class Reads {
 public:
  Reads(const CheckContext& context, StageId id, Report& report)
      : program_(context.program),
        ranges_(context.ranges),
        id_(id),
        stage_(context.program.at(id)),
        generic_(*stage_.generic()),
        report_(report),
        seen_(generic_.ins.size()) {}

  void walk() {
    std::vector<std::pair<NodeId, Box>> open{{generic_.body.root(), whole_space(generic_)}};
    while (!open.empty()) {
      const auto [id, box] = open.back();
      open.pop_back();
      const Node& node = generic_.body.at(id);
      if (const auto* n = std::get_if<OperandNode>(&node)) read(n->operand, box);
      const auto* select = std::get_if<SelectNode>(&node);
      if (!select) {
        for (const NodeId child : children(node)) open.emplace_back(child, box);
        continue;
      }
      const Pred& pred = select->cond;
      if (pred.by_operand) read(static_cast<uint32_t>(pred.bound), box);
      for (const bool holds : {true, false}) {
        const Box part = where(box, pred, holds);
        if (!empty(part)) open.emplace_back(holds ? select->then : select->otherwise, part);
      }
    }
    for (uint32_t i = 0; i < seen_.size(); ++i)
      if (seen_[i].read)
        report_.certificate.reads.push_back(
            {id_, i, seen_[i].offsets.low, seen_[i].offsets.high, seen_[i].checked_at_run});
  }

 private:
  struct Seen {
    bool read = false;
    bool failed = false;
    bool checked_at_run = false;
    Interval offsets;
  };

  void read(uint32_t operand, const Box& box) {
    // The index of an operand is read where the operand is; S12 has it end.
    for (bool more = true; more;) {
      const ElemAccess& map = generic_.ins[operand];
      look(operand, map, box);
      more = map.indirect && map.indirect->operand != operand;
      if (more) operand = map.indirect->operand;
    }
  }

  void look(uint32_t operand, const ElemAccess& map, const Box& box) {
    Seen& seen = seen_[operand];
    const Interval at = offsets(map, box);
    seen.offsets = seen.read ? hull(seen.offsets, at) : at;
    seen.read = true;
    if (seen.failed) return;
    const BufferId page = stage_.ins[operand];
    const auto size = to_signed(program_.tile.rows * program_.width(page));
    const Interval inside{0, size - 1};
    if (map.indirect && map.indirect->stride != 0) {
      seen.failed = !indexed(operand, map, at, inside, ends_by_data(map, box));
    } else if (!inside.contains(at)) {
      seen.failed = true;
      fail(operand, fmt::format("reads elements {} to {} of a page of {}", at.low, at.high, size));
    }
  }

  // `somewhere`: some of `at` is read, which part data says.
  bool indexed(uint32_t operand, const ElemAccess& map, Interval at, Interval inside, bool somewhere) {
    const IndirectTerm& term = *map.indirect;
    const Interval admitted{0, to_signed(term.modulus) - 1};
    const ElemAccess& by = generic_.ins[term.operand];
    const Interval values =
        meet(admitted, ranges_.read(stage_.ins[term.operand], affine_range(generic_, by)).value_or(everything()));
    if (values.empty()) return fail(operand, "is moved by an index that its bound never admits");
    const Interval stride{term.stride, term.stride}, moved = stride * values;
    if (!inside.contains(at + stride * admitted)) seen_[operand].checked_at_run = true;
    if (inside.contains(at + moved)) return true;
    if (somewhere && !meet(at + moved, inside).empty()) return true;
    const Interval whole = affine_range(generic_, map);
    // Only the index moves this read: every one it admits has to be inside.
    if (whole.low == whole.high)
      return fail(operand, fmt::format("reads elements {} to {} of a page of {} at indices {} to {}", (at + moved).low,
                                       (at + moved).high, inside.high + 1, values.low, values.high));
    for (const int64_t end : {at.low, at.high})
      if (meet(moved, inside - Interval{end, end}).empty())
        return fail(operand, fmt::format("reads elements {} to {} of a page of {} whatever the index is, {} to {}",
                                         saturated_add(end, moved.low), saturated_add(end, moved.high), inside.high + 1,
                                         values.low, values.high));
    return true;
  }

  bool fail(uint32_t operand, std::string_view text) {
    report_.add(id_, stage_.ins[operand], fmt::format("operand {} {}", operand, text));
    return false;
  }

  const Program& program_;
  const IndexRanges& ranges_;
  StageId id_;
  const Stage& stage_;
  const Generic& generic_;
  Report& report_;
  std::vector<Seen> seen_;
};

}  // namespace

void check_reads(const CheckContext& context, Report& report) {
  report_claimed(context, report);
  for (uint32_t i = 0; i < context.program.stages.size(); ++i)
    if (context.program.stages[i].generic() && !context.malformed[i]) Reads(context, StageId{i}, report).walk();
}

}  // namespace tw::spatial
