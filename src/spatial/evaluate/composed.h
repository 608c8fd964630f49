#pragma once

// A composed step, placed: the sections in order, the items of each as the sites come to them.

#include "spatial/compose.h"
#include "spatial/evaluate/step.h"
#include "spatial/place.h"

namespace tw::spatial::evaluate {

// The sections of the composition made ready.
Result<Step> compile(const Composition& composition);
// Makes room in the memory for what the step starts from, filled as the composition says; what is there stays.
Result<void> declare(const Composition& composition, Memory& memory);
// By section: the first item of every site, then the second of every site, and so on.
std::vector<std::vector<uint64_t>> items_by_site(const Placement& placement);

// One step. What is carried is in the memory for the next one.
Result<StepRun> evaluate(const Composition& composition, const Placement& placement, Memory& memory);

}  // namespace tw::spatial::evaluate
