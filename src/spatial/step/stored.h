#pragma once

// How the tensors of a step graph are stored: each by one precision, one layout and one kind of fill, for the whole
// step, since sections unify tensors by name.
//
//   reals      the elementwise precision E; the logits, and what an arg-max reads, in the accumulator precision where a
//              product (and maps of one element after it) makes them: what decides stays wide
//   integers   the elementwise precision Z; those that are only indices, and arg-max results, in the smallest integer
//              of the target that holds all they may be
//   caches     dense, where an attention reads them so
//   fills      constants, states and params are given; tables start as zeros

#include <vector>

#include "base/result.h"
#include "graph/step_graph.h"
#include "spatial/lower/op.h"
#include "spatial/target.h"

namespace tw::spatial::step {

// By graph::TensorId. Requires a graph that verifies. Refuses what the target has no precision for, naming the tensor.
Result<std::vector<lower::OpTensor>> stored_tensors(const graph::StepGraph& graph, const Target& target);

}  // namespace tw::spatial::step
