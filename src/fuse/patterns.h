#pragma once

// Patterns that several rules look for.

#include <optional>

#include "fuse/rule.h"

namespace tw::fuse {

// out = value * act(gate), element by element.
struct Gated {
  lane::BufferId value, gate, out;
  graph::ActivationKind act;
};
// What a SwiGlu, or a gated product of equal shapes, computes; nothing of other launches.
std::optional<Gated> gated_product(const Context& context, NodeId id);

// The launch as a sum of two operands of equal shapes, neither through an activation; null when it is none.
const lane::Binary* plain_sum(const Context& context, NodeId id);

}  // namespace tw::fuse
