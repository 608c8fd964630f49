#pragma once

// The buffers of a schedule: what they hold before the step, how they are stored, and where they lie in the arena.

#include "base/result.h"
#include "graph/step_graph.h"
#include "lane/schedule.h"
#include "plan/plan.h"

namespace tw::plan {

// One buffer a tensor of the graph (buffer id = tensor id), with the storage that the knobs and the caches' users ask
// for. `schedule` has its launches; the forms each buffer is touched in follow from them.
Result<void> make_buffers(const graph::StepGraph& graph, const Knobs& knobs, lane::Schedule& schedule);

// Lays Param and Computed buffers out in one arena, packed by lifetime. The step's inputs and outputs keep bytes of
// their own.
void place_buffers(const Knobs& knobs, lane::Schedule& schedule);

}  // namespace tw::plan
