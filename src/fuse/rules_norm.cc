// Norms: with the sum before them, with the norm of what is added, per head before a rotation, after the gather or the
// product that they read.

#include "fuse/rules.h"

namespace tw::fuse {

namespace {

using lane::BufferId;
using lane::Norm;

// A norm of x alone: what may be folded into another launch.
bool is_plain_rms(const Norm& norm) {
  return norm.norm == graph::NormKind::Rms && !lane::present(norm.add) && !lane::present(norm.sum) &&
         !lane::present(norm.bias) && !norm.pre && !norm.into;
}

Match add_norm(const Context& c, NodeId at) {
  const Norm& norm = *c.graph.as<Norm>(at);
  if (lane::present(norm.add) || norm.part) return no_match();
  const NodeId from = c.graph.producer(norm.x);
  const auto* sum = c.graph.as<lane::Binary>(from);
  if (sum == nullptr || sum->op != graph::Arithmetic::Add) return no_match();
  if (sum->row != 0) return miss("the sum adds one row to all", norm.x);
  if (sum->gate) return miss("the sum's second operand goes through an activation", norm.x);
  Norm out = norm;
  out.x = sum->a;
  out.add = sum->b;
  if (c.graph.sole_reader(norm.x) != at) out.sum = sum->out;
  return join_nodes(c, {from, at}, out);
}

Match sandwich_norm(const Context& c, NodeId at) {
  const Norm& norm = *c.graph.as<Norm>(at);
  if (!lane::present(norm.add) || norm.pre) return no_match();
  for (const bool second : {true, false}) {
    const BufferId normed = second ? norm.add : norm.x;
    const NodeId from = c.graph.producer(normed);
    const auto* inner = c.graph.as<Norm>(from);
    if (inner == nullptr || inner->out != normed) continue;
    if (norm.part) return miss("the outer norm reads a part", norm.x);
    if (!is_plain_rms(*inner) || inner->part) return miss("the inner norm is not a plain one", normed);
    if (inner->rows != norm.rows || inner->cols != norm.cols)
      return miss("the two norms have rows of other widths", normed);
    if (c.graph.sole_reader(normed) != at) return miss("the inner norm has another reader", normed);
    Norm out = norm;
    out.x = second ? norm.x : norm.add;
    out.add = inner->x;
    out.pre = lane::PreNorm{inner->w, inner->eps};
    return join_nodes(c, {from, at}, out);
  }
  return no_match();
}

Match head_norm_rope(const Context& c, NodeId at) {
  const auto& rope = *c.graph.as<lane::Rope>(at);
  if (rope.norm || rope.part) return no_match();
  const NodeId from = c.graph.producer(rope.x);
  const auto* norm = c.graph.as<Norm>(from);
  if (norm == nullptr || norm->out != rope.x) return no_match();
  if (!is_plain_rms(*norm)) return miss("the norm does more than norm a head", rope.x);
  if (norm->cols != rope.width) return miss("the norm spans another number of values than a head", rope.x);
  if (c.graph.sole_reader(rope.x) != at) return miss("the normed heads have another reader", rope.x);
  lane::Rope out = rope;
  out.x = norm->x;
  out.part = norm->part;
  out.norm = lane::HeadNorm{norm->w, norm->eps};
  return join_nodes(c, {from, at}, out);
}

Match gather_scale(const Context& c, NodeId at) {
  const auto& scale = *c.graph.as<lane::Scale>(at);
  const NodeId from = c.graph.producer(scale.x);
  const auto* gather = c.graph.as<lane::Gather>(from);
  if (gather == nullptr) return no_match();
  if (gather->scale != 1) return miss("the gather scales already", scale.x);
  if (c.graph.sole_reader(scale.x) != at) return miss("the gathered rows have another reader", scale.x);
  lane::Gather out = *gather;
  out.out = scale.y;
  out.scale = scale.factor;
  return join_nodes(c, {from, at}, out);
}

Match embed_norm(const Context& c, NodeId at) {
  const Norm& norm = *c.graph.as<Norm>(at);
  const NodeId from = c.graph.producer(norm.x);
  const auto* gather = c.graph.as<lane::Gather>(from);
  if (gather == nullptr) return no_match();
  if (norm.part || lane::present(norm.add)) return miss("the norm does more than norm the gathered rows", norm.x);
  if (norm.rows != gather->rows || norm.cols != gather->cols)
    return miss("the norm is not of the gathered rows", norm.x);
  return join_nodes(c, {from, at}, lane::Fold{{*gather, norm}});
}

// The result of a product that lands whole in its own buffer, and the width of it.
struct Product {
  const lane::Dst* y = nullptr;
  uint64_t n = 0, m = 0;
};
Product product_of(const Context& c, NodeId id) {
  if (const auto* gemv = c.graph.as<lane::Gemv>(id)) return {&gemv->y, gemv->n, gemv->m};
  if (const auto* gemv = c.graph.as<lane::GemvF32>(id)) return {&gemv->y, gemv->n, gemv->m};
  return {};
}

Match gemv_norm_epilogue(const Context& c, NodeId at) {
  const Norm& norm = *c.graph.as<Norm>(at);
  for (const BufferId operand : {norm.add, norm.x}) {
    const NodeId from = c.graph.producer(operand);
    const Product product = product_of(c, from);
    if (product.y == nullptr) continue;
    if (product.m != 1 || c.batch()) return miss("the product has more than one row", operand);
    if (!product.y->own()) return miss("the product lands in a table", operand);
    if (norm.part || norm.rows != 1 || norm.cols != product.n)
      return miss("the norm is not of the whole product", operand);
    return join_nodes(c, {from, at}, lane::Fold{{c.graph.at(from).launch, norm}});
  }
  return no_match();
}

}  // namespace

const Rule kAddNorm{"add_norm", "s = a + b, y = norm(s)", "norm that adds b and keeps s if it is read", kinds<Norm>(),
                    add_norm};
const Rule kSandwichNorm{"sandwich_norm", "p = rms(o), s = r + p, y = norm(s)", "norm that norms what it adds",
                         kinds<Norm>(), sandwich_norm};
const Rule kHeadNormRope{"head_norm_rope", "n = rms of each head, y = rope(n)", "rotation that norms its heads",
                         kinds<lane::Rope>(), head_norm_rope};
const Rule kGatherScale{"gather_scale", "g = gather(table), y = g * c", "gather that scales", kinds<lane::Scale>(),
                        gather_scale};
const Rule kEmbedNorm{"embed_norm", "g = gather(table), y = norm(g)", "fold of the gather and the norm of its rows",
                      kinds<Norm>(), embed_norm};
const Rule kGemvNormEpilogue{"gemv_norm_epilogue", "p = x W of one row, y = norm(.. p ..)",
                             "fold of the product and the norm", kinds<Norm>(), gemv_norm_epilogue};

}  // namespace tw::fuse
