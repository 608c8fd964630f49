#pragma once

// A sequence of steps: a prompt in chunks, then decode steps that go on from what the target itself would choose.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "spatial/step/simulate.h"

namespace tw::spatial::step {

// A step of so many rows of one sequence: a decode step for one. Refuses the rows that there is no step of.
using StepOf = std::function<Result<graph::StepGraph>(uint32_t rows)>;

struct RolloutOptions {
  std::vector<int32_t> prompt;  // 1-based
  uint32_t chunk = 32;          // the most rows of a step
  uint32_t steps = 0;           // decode steps after the prompt
  const std::atomic<bool>* interrupted = nullptr;
};

struct RolloutStep {
  FormId form{};
  uint32_t position = 1;  // 1-based, of the first row
  std::vector<int32_t> tokens;
  StepOutcome outcome;
};

// Calls `each` after every step. Refuses an empty prompt and what the simulator refuses. Each number of rows is lowered
// once.
Result<void> roll_out(Simulator& simulator, const StepOf& step_of, const RolloutOptions& options,
                      const std::function<void(const RolloutStep&)>& each);

}  // namespace tw::spatial::step
