#pragma once

// A step graph for a spatial target: every op lowered, layouts agreed between the sections, the sections composed.
//
//   TW_TRY(const LoweredStep step, lower_step(graph, target));
//   certify(step.composition, target); place(step.composition, target); evaluate::compile(step.composition);

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/step_graph.h"
#include "spatial/compose.h"
#include "spatial/target.h"

namespace tw::spatial::step {

// What an op became: sections first to first + count - 1 of the composition, those included that lay out what it reads.
struct LoweredOp {
  graph::OpId op{};
  std::string form;  // as docs/spatial-lowering.md calls it
  std::string why;   // the condition that chose it, in numbers
  uint32_t first = 0;
  uint32_t count = 0;
  std::vector<uint32_t> relayouts;  // of those sections, the ones that the layout pass put there
  bool operator==(const LoweredOp&) const = default;
};

struct LoweredStep {
  Composition composition;
  std::vector<LoweredOp> ops;  // in the order of the graph
};

struct LowerOptions {
  // The name of a result: only the ops that make or update it. What other ops would have made is given.
  std::string only;
};

// The subject of a refusal is the tensor that an op makes, or that the target has no precision for; the reason of an
// op's refusal begins with the op. Linear in the ops.
Result<LoweredStep> lower_step(const graph::StepGraph& graph, const Target& target, const LowerOptions& options = {});

}  // namespace tw::spatial::step
