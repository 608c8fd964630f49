// What surrounds a gated delta rule: convolutions with their activation and norm, the gates and their projections.

#include <algorithm>

#include "fuse/rules.h"

namespace tw::fuse {

namespace {

using lane::Conv;

// Places of the graph over which a layer's convolutions are looked for.
constexpr uint32_t kReach = 64;
// Channels of a block of convolutions none of which norms its heads.
constexpr uint64_t kPlainBlock = 64;

Match conv_silu(const Context& c, NodeId at) {
  const auto& unary = *c.graph.as<lane::Unary>(at);
  if (unary.act != graph::ActivationKind::Silu || unary.cap != 0) return no_match();
  const NodeId from = c.graph.producer(unary.x);
  const auto* conv = c.graph.as<Conv>(from);
  if (conv == nullptr || conv->silu) return no_match();
  if (c.graph.sole_reader(unary.x) != at) return miss("the convolution has another reader", unary.x);
  Conv out = *conv;
  out.silu = true;
  out.y = unary.y;
  return join_nodes(c, {from, at}, out);
}

Match conv_silu_l2(const Context& c, NodeId at) {
  const auto& norm = *c.graph.as<lane::L2Norm>(at);
  const NodeId from = c.graph.producer(norm.x);
  const auto* conv = c.graph.as<Conv>(from);
  if (conv == nullptr) return no_match();
  if (!conv->silu) return miss("the convolution has no silu", norm.x);
  if (conv->l2_width != 0 || conv->chan % norm.cols != 0) return miss("the channels are not whole heads", norm.x);
  if (c.graph.sole_reader(norm.x) != at) return miss("the convolution has another reader", norm.x);
  Conv out = *conv;
  out.l2_width = norm.cols;
  out.l2_eps = norm.eps;
  out.y = norm.y;
  return join_nodes(c, {from, at}, out);
}

// Whether `next` can share a launch with convolutions whose normed heads are `block` wide (0: none norms so far).
bool fits(const Conv& first, const Conv& next, uint64_t block, float eps) {
  if (!next.silu || next.rows != 1 || next.taps != first.taps) return false;
  return next.l2_width == 0 || block == 0 || (next.l2_width == block && next.l2_eps == eps);
}

Match conv_parts(const Context& c, NodeId at) {
  const Conv& first = *c.graph.as<Conv>(at);
  if (!first.silu) return miss("the convolution ends in no silu", first.y);
  if (first.rows != 1) return miss("the convolution is of more than one row", first.y);
  lane::ConvParts out;
  out.taps = first.taps;
  out.block = first.l2_width;
  out.eps = first.l2_eps;
  std::vector<NodeId> group{at};
  for (uint32_t i = index(at) + 1; i < c.graph.size() && i - index(at) < kReach; ++i) {
    const NodeId next{i};
    const Conv* conv = c.graph.alive(next) ? c.graph.as<Conv>(next) : nullptr;
    if (conv == nullptr || c.graph.sequence(next) != c.graph.sequence(at) || !fits(first, *conv, out.block, out.eps))
      continue;
    group.push_back(next);
    if (std::any_of(group.begin(), group.end() - 1,
                    [&](NodeId member) { return c.graph.blocked(member, next, group).has_value(); })) {
      group.pop_back();
      break;
    }
    if (conv->l2_width != 0) out.block = conv->l2_width, out.eps = conv->l2_eps;
  }
  if (group.size() < 2) return no_match();
  if (out.block == 0) out.block = kPlainBlock;
  for (const NodeId id : group) {
    const Conv& conv = *c.graph.as<Conv>(id);
    if (conv.chan % out.block != 0) return miss("the channels are not whole blocks", conv.y);
    out.parts.push_back({conv.x, conv.w, conv.ring, conv.y, conv.chan, conv.l2_width != 0});
  }
  return join_nodes(c, group, out);
}

Match gates(const Context& c, NodeId at) {
  const auto& delta = *c.graph.as<lane::Delta>(at);
  const NodeId beta_node = c.graph.producer(delta.beta), decay_node = c.graph.producer(delta.alpha);
  const auto* beta = c.graph.as<lane::Unary>(beta_node);
  const auto* decay = c.graph.as<lane::Decay>(decay_node);
  if (beta == nullptr || decay == nullptr) return no_match();
  if (beta->act != graph::ActivationKind::Sigmoid || beta->cap != 0)
    return miss("the write gate is no sigmoid", delta.beta);
  if (beta->n != decay->n) return miss("the gates are not over the same heads", delta.alpha);
  lane::Gates out{beta->x, decay->x, decay->bias, decay->rate, beta->y, decay->y, decay->n, decay->heads};
  return join_nodes(c, {beta_node, decay_node}, out);
}

Match gate_projections(const Context& c, NodeId at) {
  const auto& gates = *c.graph.as<lane::Gates>(at);
  const NodeId beta_node = c.graph.producer(gates.br), alpha_node = c.graph.producer(gates.ar);
  const auto* beta = c.graph.as<lane::GemvF32>(beta_node);
  const auto* alpha = c.graph.as<lane::GemvF32>(alpha_node);
  if (beta == nullptr || alpha == nullptr) return miss("a gate is no product by floating-point weights", gates.br);
  if (beta->m != 1) return miss("the products have more than one row", gates.br);
  if (beta->x != alpha->x) return miss("the products read different activations", gates.ar);
  if (lane::present(beta->bias) || lane::present(alpha->bias)) return miss("a product has a bias", gates.br);
  if (!beta->y.own() || !alpha->y.own()) return miss("a product lands in a table", gates.br);
  if (c.graph.sole_reader(gates.br) != at) return miss("a product has another reader", gates.br);
  if (c.graph.sole_reader(gates.ar) != at) return miss("a product has another reader", gates.ar);
  lane::GateProj out;
  out.x = beta->x, out.wb = beta->w, out.wa = alpha->w, out.bias = gates.bias, out.rate = gates.rate;
  out.beta = gates.beta, out.decay = gates.decay, out.k = beta->k, out.heads = gates.heads;
  return join_nodes(c, {beta_node, alpha_node, at}, out);
}

}  // namespace

const Rule kConvSilu{"conv_silu", "c = conv(x), s = silu(c)", "convolution with its silu", kinds<lane::Unary>(),
                     conv_silu};
const Rule kConvSiluL2{"conv_silu_l2", "s = silu(conv(x)), y = l2 norm of each head of s",
                       "convolution with silu and norm", kinds<lane::L2Norm>(), conv_silu_l2};
const Rule kConvParts{"conv_parts", "convolutions with silu of one row, of as many taps", "convolutions in parts",
                      kinds<Conv>(), conv_parts};
const Rule kGates{"gates", "beta = sigmoid(b), alpha = decay(a) of a delta rule", "both gates", kinds<lane::Delta>(),
                  gates};
const Rule kGateProjections{"gate_projections", "b = x Wb, a = x Wa of one row, both gates",
                            "gates from the activation", kinds<lane::Gates>(), gate_projections};

}  // namespace tw::fuse
