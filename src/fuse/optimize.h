#pragma once

// Applies the table of rules to a graph, in its order, until none applies.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuse/graph.h"
#include "fuse/shim.h"

namespace tw::fuse {

// A rule that fired, and the ops of the launches it made.
struct Fired {
  std::string_view rule;
  std::vector<graph::OpId> covers;
};

// Where a rule's pattern was, and what kept it from firing when the rule last looked.
struct Missed {
  std::string_view rule;
  std::vector<graph::OpId> covers;  // of the launch it started from
  std::string why;
};

struct Outcome {
  std::vector<Fired> fired;
  std::vector<Missed> missed;  // only when asked for
};

struct OptimizeOptions {
  lane::Numerics numerics = lane::Numerics::Int8;
  std::span<const std::string> held;  // names of rules that do not take part
  bool explain = false;               // collect what was missed
};

Outcome optimize(Graph& graph, const Shim& shim, const OptimizeOptions& options);

}  // namespace tw::fuse
