// Products: with their bias, in gated pairs, several of one activation as one.

#include <algorithm>

#include "fuse/patterns.h"
#include "fuse/rules.h"

namespace tw::fuse {

namespace {

using lane::Binary;
using lane::BufferId;
using lane::Gemv;
using lane::GemvF32;

// Rows up to which several products run as one vector kernel.
constexpr uint64_t kGemvRows = 16;

template <class Product>
Match with_bias(const Context& c, NodeId at, NodeId from, const Product& product) {
  const Binary& add = *c.graph.as<Binary>(at);
  if (lane::present(product.bias)) return miss("the product has a bias already", add.a);
  if (!product.y.own()) return miss("the product lands in a table", add.a);
  if (add.row != product.n) return miss("the added row is not as wide as the product", add.b);
  if (c.graph.tensor(add.b).role != graph::Role::Constant) return miss("what is added is not a constant", add.b);
  if (c.graph.sole_reader(add.a) != at) return miss("the product has another reader", add.a);
  Product out = product;
  out.bias = add.b;
  out.y.buf = add.out;
  return join_nodes(c, {from, at}, out);
}

Match gemv_bias(const Context& c, NodeId at) {
  const Binary& add = *c.graph.as<Binary>(at);
  if (add.op != graph::Arithmetic::Add || add.row == 0 || add.scalar || add.gate) return no_match();
  const NodeId from = c.graph.producer(add.a);
  if (const auto* gemv = c.graph.as<Gemv>(from)) return with_bias(c, at, from, *gemv);
  if (const auto* gemv = c.graph.as<GemvF32>(from)) return with_bias(c, at, from, *gemv);
  return no_match();
}

Match glu_pair(const Context& c, NodeId at) {
  const auto glu = gated_product(c, at);
  if (!glu) return no_match();
  const NodeId gate_node = c.graph.producer(glu->gate), up_node = c.graph.producer(glu->value);
  const auto* gate = c.graph.as<Gemv>(gate_node);
  const auto* up = c.graph.as<Gemv>(up_node);
  if (gate == nullptr || up == nullptr || gate == up) return no_match();
  if (glu->act != graph::ActivationKind::Silu && glu->act != graph::ActivationKind::GeluTanh) {
    return miss("the activation of the gate is neither silu nor gelu", glu->gate);
  }
  if (gate->x != up->x) return miss("the two products read different activations", glu->value);
  if (gate->n != up->n || gate->k != up->k || gate->m != up->m)
    return miss("the two products have other shapes", glu->value);
  if (!gate->y.own() || !up->y.own()) return miss("a product lands in a table", glu->gate);
  if (c.graph.sole_reader(glu->gate) != at) return miss("the gate's product has another reader", glu->gate);
  if (c.graph.sole_reader(glu->value) != at) return miss("the other product has another reader", glu->value);
  lane::GemvGlu out;
  out.x = gate->x, out.wg = gate->w, out.wu = up->w, out.bg = gate->bias, out.bu = up->bias, out.out = glu->out;
  out.formats = {gate->format, up->format};
  out.act.kind = glu->act == graph::ActivationKind::Silu ? graph::MoeAct::Kind::SwiGlu : graph::MoeAct::Kind::GeGlu;
  out.k = gate->k, out.n = gate->n, out.m = gate->m, out.batch = gate->batch;
  return join_nodes(c, {gate_node, up_node, at}, out);
}

// The products after `anchor` that read the same activation in the same format and can run with it.
std::vector<NodeId> same_activation(const Context& c, NodeId anchor) {
  const Gemv& first = *c.graph.as<Gemv>(anchor);
  std::vector<NodeId> group{anchor};
  if (first.y.unit) return group;
  for (NodeId next = c.graph.reader_after(first.x, anchor); present(next); next = c.graph.reader_after(first.x, next)) {
    const auto* gemv = c.graph.as<Gemv>(next);
    if (gemv == nullptr || gemv->x != first.x || gemv->format != first.format || gemv->m != first.m || gemv->y.unit)
      continue;
    group.push_back(next);
    const bool legal = std::none_of(group.begin(), group.end() - 1,
                                    [&](NodeId member) { return c.graph.blocked(member, next, group).has_value(); });
    if (!legal) group.pop_back();
  }
  return group;
}

Match in_parts(const Context& c, NodeId at) {
  const std::vector<NodeId> group = same_activation(c, at);
  if (group.size() < 2) return no_match();
  const Gemv& first = *c.graph.as<Gemv>(at);
  lane::GemmParts out;
  out.x = first.x, out.format = first.format, out.k = first.k, out.m = first.m, out.batch = first.batch;
  for (const NodeId id : group) {
    const Gemv& gemv = *c.graph.as<Gemv>(id);
    out.parts.push_back({gemv.w, gemv.bias, gemv.y, gemv.n});
  }
  return join_nodes(c, group, out);
}

// Whether the product's rows run as a vector kernel does: few of them, or one a sequence.
bool row_by_row(const Context& c, NodeId at) { return c.graph.as<Gemv>(at)->m <= kGemvRows || c.batch(); }

Match gemv_parts(const Context& c, NodeId at) { return row_by_row(c, at) ? in_parts(c, at) : no_match(); }
Match merged_projections(const Context& c, NodeId at) { return row_by_row(c, at) ? no_match() : in_parts(c, at); }

Match qkv_head_epilogue(const Context& c, NodeId at) {
  const auto& ropes = *c.graph.as<lane::RopeParts>(at);
  const NodeId from = c.graph.producer(ropes.sides.front().x);
  const auto* products = c.graph.as<lane::GemmParts>(from);
  if (products == nullptr) return no_match();
  if (products->m != 1 || c.batch()) return miss("the products have more than one row", ropes.sides.front().x);
  for (const lane::RopeSide& side : ropes.sides) {
    if (c.graph.producer(side.x) != from) return miss("a rotation reads something else than these products", side.x);
  }
  return join_nodes(c, {from, at}, lane::Fold{{*products, ropes}});
}

}  // namespace

const Rule kGemvBias{"gemv_bias", "y = x W, z = y + b with b one constant row", "product that adds its bias",
                     kinds<Binary>(), gemv_bias};
const Rule kGluPair{"glu_pair", "g = x Wg, u = x Wu, h = act(g) * u", "both products through the gate",
                    kinds<Binary, lane::SwiGlu>(), glu_pair};
const Rule kGemvParts{"gemv_parts", "products of one activation in one format, at most 16 rows or a batch",
                      "products in parts", kinds<Gemv>(), gemv_parts};
const Rule kMergedProjections{"merged_projections", "products of one activation in one format, more than 16 rows",
                              "products in parts", kinds<Gemv>(), merged_projections};
const Rule kQkvHeadEpilogue{"qkv_head_epilogue", "products in parts of one row, and the rotations of some of them",
                            "fold of the products and the rotations", kinds<lane::RopeParts>(), qkv_head_epilogue};

}  // namespace tw::fuse
