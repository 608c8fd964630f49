// Rotations of one row as one launch.

#include <algorithm>

#include "fuse/rules.h"

namespace tw::fuse {

namespace {

using lane::Rope;

bool same_turn(const Rope& a, const Rope& b) {
  return a.cos == b.cos && a.sin == b.sin && a.position == b.position && a.width == b.width && a.half == b.half;
}

lane::RopeSide side_of(const Rope& rope) { return {rope.x, rope.part, rope.norm, rope.y, rope.heads, rope.per_row, 0}; }

Match rope_parts(const Context& c, NodeId at) {
  const Rope& first = *c.graph.as<Rope>(at);
  if (first.heads != first.per_row) return miss("the rotation is of more than one row", first.x);
  if (!lane::present(first.position)) return miss("the rotation has no position", first.x);
  std::vector<NodeId> group{at};
  // A layer's rotations read the same position one after another; the first that cannot join ends the search.
  for (NodeId next = c.graph.reader_after(first.position, at); present(next);
       next = c.graph.reader_after(first.position, next)) {
    if (c.graph.as<lane::Attention>(next) != nullptr) break;
    const Rope* rope = c.graph.as<Rope>(next);
    if (rope == nullptr) continue;
    if (!same_turn(first, *rope) || rope->heads != rope->per_row) break;
    group.push_back(next);
    if (std::any_of(group.begin(), group.end() - 1,
                    [&](NodeId member) { return c.graph.blocked(member, next, group).has_value(); })) {
      group.pop_back();
      break;
    }
  }
  if (group.size() < 2) return no_match();
  lane::RopeParts out;
  out.cos = first.cos, out.sin = first.sin, out.position = first.position;
  out.width = first.width, out.half = first.half;
  for (const NodeId id : group) out.sides.push_back(side_of(*c.graph.as<Rope>(id)));
  return join_nodes(c, std::move(group), out);
}

}  // namespace

const Rule kRopeParts{"rope_parts", "rotations of one row by the same tables at the same position",
                      "rotations in parts", kinds<Rope>(), rope_parts};

}  // namespace tw::fuse
