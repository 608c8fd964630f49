#include "fuse/patterns.h"

namespace tw::fuse {

using lane::Binary;

std::optional<Gated> gated_product(const Context& context, NodeId id) {
  if (const auto* glu = context.graph.as<lane::SwiGlu>(id)) {
    return Gated{glu->u, glu->g, glu->out, graph::ActivationKind::Silu};
  }
  const auto* product = context.graph.as<Binary>(id);
  if (product == nullptr || product->op != graph::Arithmetic::Mul || !product->gate || product->row != 0) {
    return std::nullopt;
  }
  return Gated{product->a, product->b, product->out, *product->gate};
}

const Binary* plain_sum(const Context& context, NodeId id) {
  const auto* sum = context.graph.as<Binary>(id);
  const bool plain = sum != nullptr && sum->op == graph::Arithmetic::Add && !sum->gate && sum->row == 0;
  return plain ? sum : nullptr;
}

}  // namespace tw::fuse
