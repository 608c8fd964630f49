#pragma once

// One graph op to the launch that computes it. Buffer ids are the graph's tensor ids.

#include "base/result.h"
#include "graph/constants.h"
#include "graph/step_graph.h"
#include "lane/launch.h"

namespace tw::lane {

struct LinkContext {
  const graph::StepGraph& graph;
  const graph::Constants& constants;
};

// The launch of op `id`, or why there is none.
Result<Launch> link(const LinkContext& context, graph::OpId id);

inline BufferId buffer_of(graph::TensorId id) { return BufferId{graph::index(id)}; }

}  // namespace tw::lane
