// Mixtures of experts: with the shared experts, over all rows at once, with the norm that follows.

#include <algorithm>

#include "fuse/patterns.h"
#include "fuse/rules.h"

namespace tw::fuse {

namespace {

using lane::Binary;
using lane::BufferId;
using lane::Moe;

Match shared_expert(const Context& c, NodeId at) {
  const Binary* sum = plain_sum(c, at);
  if (sum == nullptr) return no_match();
  for (const bool swapped : {false, true}) {
    const BufferId routed = swapped ? sum->b : sum->a, shared = swapped ? sum->a : sum->b;
    const NodeId moe_node = c.graph.producer(routed), down_node = c.graph.producer(shared);
    const auto* moe = c.graph.as<Moe>(moe_node);
    const auto* down = c.graph.as<lane::Gemv>(down_node);
    if (moe == nullptr || down == nullptr) continue;
    const NodeId glu_node = c.graph.producer(down->x);
    const auto* glu = c.graph.as<lane::GemvGlu>(glu_node);
    if (glu == nullptr) return miss("the other addend is no gated network", shared);
    if (moe->shared || !moe->y.own())
      return miss("the mixture has shared experts already, or lands in a table", routed);
    if (glu->x != moe->x) return miss("the network reads another activation than the mixture", down->x);
    if (glu->act.kind != graph::MoeAct::Kind::SwiGlu) return miss("the network's activation is not silu", down->x);
    if (lane::present(glu->bg) || lane::present(glu->bu) || lane::present(down->bias))
      return miss("the network has biases", shared);
    for (const auto& [value, reader] : {std::pair{routed, at}, {shared, at}, {down->x, down_node}}) {
      if (c.graph.sole_reader(value) != reader) return miss("a value between has another reader", value);
    }
    Moe out = *moe;
    out.shared =
        lane::SharedExperts{glu->wg, glu->wu, down->w, {glu->formats[0], glu->formats[1], down->format}, glu->n};
    out.y.buf = sum->out;
    return join_nodes(c, {moe_node, glu_node, down_node, at}, out);
  }
  return no_match();
}

// The mixture without what differs from row to row.
Moe without_row(Moe moe) {
  moe.x = moe.y.buf = lane::kNoBuffer;
  return moe;
}

// Rows of X through one-row mixtures into the rows of a table.
Match moe_rows(const Context& c, NodeId at) {
  const Moe& first = *c.graph.as<Moe>(at);
  const BufferId all = c.graph.root(first.x);
  if (first.rows != 1 || all == first.x || !first.y.own()) return no_match();
  const uint64_t rows = c.graph.tensor(all).rows;
  BufferId table = lane::kNoBuffer;
  std::vector<bool> seen(rows, false);
  std::vector<NodeId> nodes;
  for (const NodeId reader : c.graph.readers(all)) {
    const auto* moe = c.graph.as<Moe>(reader);
    if (moe == nullptr || !(without_row(*moe) == without_row(first))) continue;
    const NodeId writer = c.graph.sole_reader(moe->y.buf);
    const auto* set = c.graph.as<lane::SetRow>(writer);
    const uint64_t row = c.graph.offset(moe->x) / moe->d;
    if (set == nullptr || lane::present(set->at.param) || set->at.fixed != row + 1) {
      return miss("a row's mixture is not set into its own row of a table", moe->y.buf);
    }
    if (lane::present(table) && set->table != table) return miss("the rows are set into different tables", set->table);
    if (seen[row]) return miss("a row has two mixtures", moe->x);
    table = set->table;
    seen[row] = true;
    nodes.push_back(reader);
    nodes.push_back(writer);
  }
  if (std::find(seen.begin(), seen.end(), false) != seen.end())
    return miss("not every row goes through the mixture", all);
  if (c.graph.tensor(table).rows != rows) return miss("the table has other rows", table);
  Moe out = first;
  out.x = all, out.y.buf = table, out.rows = rows, out.batch = c.batch();
  return join_nodes(c, std::move(nodes), out);
}

Match finished(const Context& c, NodeId at, NodeId moe_node, std::optional<NodeId> sum_node, BufferId operand) {
  const auto& norm = *c.graph.as<lane::Norm>(at);
  const Moe& moe = *c.graph.as<Moe>(moe_node);
  if (!moe.y.own()) return miss("the mixture lands in a table", operand);
  if (norm.part || norm.rows != moe.rows || norm.cols != moe.d)
    return miss("the norm is not of the mixture's rows", operand);
  if (!sum_node) {
    if (c.graph.sole_reader(operand) != at) return miss("the mixture has another reader", operand);
    return join_nodes(c, {moe_node, at}, lane::Fold{{moe, norm}});
  }
  if (c.graph.sole_reader(moe.y.buf) != *sum_node) return miss("the mixture has another reader", moe.y.buf);
  return join_nodes(c, {moe_node, *sum_node, at}, lane::Fold{{lane::Fold{{moe, c.graph.at(*sum_node).launch}}, norm}});
}

Match moe_deferred_finalize(const Context& c, NodeId at) {
  const auto& norm = *c.graph.as<lane::Norm>(at);
  for (const BufferId operand : {norm.add, norm.x}) {
    const NodeId from = c.graph.producer(operand);
    if (c.graph.as<Moe>(from) != nullptr) return finished(c, at, from, std::nullopt, operand);
    const Binary* sum = plain_sum(c, from);
    if (sum == nullptr) continue;
    for (const BufferId addend : {sum->a, sum->b}) {
      const NodeId moe = c.graph.producer(addend);
      if (c.graph.as<Moe>(moe) != nullptr) return finished(c, at, moe, from, operand);
    }
  }
  return no_match();
}

}  // namespace

const Rule kSharedExpert{"shared_expert", "y = moe(x) + Wd (silu(x Wg) * (x Wu))", "mixture with its shared experts",
                         kinds<Binary>(), shared_expert};
const Rule kMoeRows{"moe_rows", "row r of X through a mixture into row r of Y, for all r", "one mixture of all rows",
                    kinds<Moe>(), moe_rows};
const Rule kMoeDeferredFinalize{"moe_deferred_finalize", "m = moe(x), or m + other, then norm(.. m ..)",
                                "fold of the mixture, the sum and the norm", kinds<lane::Norm>(),
                                moe_deferred_finalize};

}  // namespace tw::fuse
