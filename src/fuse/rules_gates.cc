// Activations that gate something: as an operand's own activation, and in the store of an attention.

#include "fuse/patterns.h"
#include "fuse/rules.h"

namespace tw::fuse {

namespace {

using lane::Attention;
using lane::Binary;
using lane::BufferId;

Match act_gate(const Context& c, NodeId at) {
  const Binary& binary = *c.graph.as<Binary>(at);
  const bool commutes = binary.op == graph::Arithmetic::Mul || binary.op == graph::Arithmetic::Add;
  if (binary.gate || !commutes) return no_match();
  for (const bool second : {true, false}) {
    const BufferId activated = second ? binary.b : binary.a;
    const NodeId from = c.graph.producer(activated);
    const auto* unary = c.graph.as<lane::Unary>(from);
    if (unary == nullptr) continue;
    if (unary->cap != 0) return miss("a soft cap is no gate", activated);
    if (!second && binary.row != 0) return miss("the activated operand is not the broadcast one", activated);
    if (binary.a == binary.b || c.graph.sole_reader(activated) != at)
      return miss("the activated value has another reader", activated);
    const BufferId other = second ? binary.a : binary.b;
    if (binary.op == graph::Arithmetic::Mul && unary->act == graph::ActivationKind::Silu && binary.row == 0) {
      return join_nodes(c, {from, at}, lane::SwiGlu{unary->x, other, binary.out, {}, binary.n});
    }
    Binary out = binary;
    out.a = other;
    out.b = unary->x;
    out.gate = unary->act;
    return join_nodes(c, {from, at}, out);
  }
  return no_match();
}

Attention with_gate(const Attention& attention, const Gated& g, uint64_t offset) {
  Attention out = attention;
  out.gate = g.gate;
  out.gate_act = g.act;
  out.gate_offset = offset;
  return out;
}

// A batch: every sequence's attention is set into a row of a table that is gated as a whole. Each attention takes its
// row of the gate, and the rows go to where the gated table went.
Match gate_rows(const Context& c, NodeId at, const Gated& g) {
  Rewrite out;
  out.vanish = {at};
  out.cover_all = true;
  uint64_t rows = 0;
  for (const NodeId writer : c.graph.writers(g.value)) {
    const auto* set = c.graph.as<lane::SetRow>(writer);
    if (set == nullptr || lane::present(set->at.param) || set->count != 1)
      return miss("the table is not set by rows", g.value);
    const NodeId from = c.graph.producer(set->src);
    const auto* attention = c.graph.as<Attention>(from);
    if (attention == nullptr) return no_match();
    if (lane::present(attention->gate)) return miss("the attention has a gate already", set->src);
    if (c.graph.sole_reader(set->src) != writer) return miss("an attention has another reader", set->src);
    lane::SetRow to = *set;
    to.table = g.out;
    out.become.emplace_back(from, with_gate(*attention, g, uint64_t{set->at.fixed - 1} * set->cols));
    out.become.emplace_back(writer, to);
    ++rows;
  }
  if (rows != c.graph.tensor(g.value).rows) return miss("not every row of the table is an attention", g.value);
  if (c.graph.sole_reader(g.value) != at) return miss("the table has another reader", g.value);
  return out;
}

Match attn_output_gate(const Context& c, NodeId at) {
  const auto g = gated_product(c, at);
  if (!g) return no_match();
  if (c.graph.tensor(g->value).role == graph::Role::Table) return gate_rows(c, at, *g);
  const NodeId from = c.graph.producer(g->value);
  const auto* attention = c.graph.as<Attention>(from);
  if (attention == nullptr) return no_match();
  if (lane::present(attention->gate)) return miss("the attention has a gate already", g->value);
  if (c.graph.sole_reader(g->value) != at) return miss("the attention has another reader", g->value);
  Attention out = with_gate(*attention, *g, 0);
  out.out = g->out;
  return join_nodes(c, {from, at}, out);
}

}  // namespace

const Rule kActGate{"act_gate", "t = act(g), y = u * t or u + t", "arithmetic with the activation of its operand",
                    kinds<Binary>(), act_gate};
const Rule kAttnOutputGate{"attn_output_gate", "o = attention(..), y = o * act(g)",
                           "attention that gates what it stores", kinds<Binary, lane::SwiGlu>(), attn_output_gate};

}  // namespace tw::fuse
