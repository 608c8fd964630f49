#pragma once

// From a step graph to a schedule.

#include <cstdint>

#include "base/result.h"
#include "graph/constants.h"
#include "graph/step_graph.h"
#include "lane/schedule.h"

namespace tw::plan {

struct Knobs {
  lane::Numerics numerics = lane::Numerics::Int8;
  lane::Dtype cache = lane::Dtype::F32;  // keys and values: F32 or F16
  lane::Dtype state = lane::Dtype::F32;  // delta rule memories: F32 or BF16
  // Bytes of the quantized form of n values in `words` words, as the lane lays it out.
  uint64_t (*quantized_bytes)(uint64_t n, uint32_t words) = nullptr;

  bool operator==(const Knobs&) const = default;
};

// Refuses, naming the op, its kind, its result and the reason, what this lane has no launch for; a constant that has no
// place (Missing); an activation that a product reads quantized and that is not whole blocks of 32.
Result<lane::Schedule> plan_step(const graph::StepGraph& graph, const graph::Constants& constants, const Knobs& knobs);

}  // namespace tw::plan
