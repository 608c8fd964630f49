#pragma once

// From a step graph to a schedule.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse/optimize.h"
#include "fuse/shim.h"
#include "graph/constants.h"
#include "graph/step_graph.h"
#include "lane/schedule.h"

namespace tw::plan {

// What the plan knows of the machine. None of it enters a result's bits: it decides who does what.
struct Chip {
  uint32_t blocks = 2;              // units that work at once: threads of a CPU, multiprocessors of a GPU
  uint32_t vector_floats = 8;       // f32 values of a vector: the outputs that one unit sums side by side
  uint64_t shared_bytes = 1 << 20;  // fast memory of a unit: a core's L2
  bool operator==(const Chip&) const = default;
};

struct Knobs {
  lane::Numerics numerics = lane::Numerics::Int8;
  lane::Order order = lane::Order::Strict;
  lane::Dtype cache = lane::Dtype::F32;  // keys and values: F32 or F16
  lane::Dtype state = lane::Dtype::F32;  // delta rule memories: F32 or BF16
  bool fuse_quant = true;                // launches quantize what they store; else launches of their own do
  std::vector<std::string> held;         // names of rules that do not take part (fuse/rules.h)
  Chip chip;
  // What the lane runs; without one no rule makes a fused launch.
  const fuse::Shim* shim = nullptr;
  // Bytes of the quantized form of n values in `words` words, as the lane lays it out.
  uint64_t (*quantized_bytes)(uint64_t n, uint32_t words) = nullptr;

  [[nodiscard]] bool holds(std::string_view rule) const;
  bool operator==(const Knobs&) const = default;
};

// What the optimizer did and what it could not do.
using Explanation = fuse::Outcome;

// Refuses, naming the op, its kind, its result and the reason, what this lane has no launch for; a constant that has no
// place (Missing); an activation that a product reads quantized and that is not whole blocks of 32; a held name that is
// no rule's (Usage). `explanation`, when given, gets every firing and every miss.
Result<lane::Schedule> plan_step(const graph::StepGraph& graph, const graph::Constants& constants, const Knobs& knobs,
                                 Explanation* explanation = nullptr);

}  // namespace tw::plan
