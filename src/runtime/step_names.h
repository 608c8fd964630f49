#pragma once

// What a profile or a trace calls a step and its launches.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace tw::runtime {

// A launch that runs a kernel.
struct StepLaunch {
  uint32_t launch = 0;  // of the schedule
  std::string kind;
  std::string ops;  // the graph ops it computes: "matmul blk.0.q, rope blk.0.q_rope"
};

// Those of a step, in the order in which they run. `engine` is the one that ran it.
std::vector<StepLaunch> launches_of(const TimedStep& step, const Engine& engine);

// "prefill", "decode", "batch of 8".
std::string phase_name(const graph::Form& form);

}  // namespace tw::runtime
