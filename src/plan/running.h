#pragma once

// How launches run on the machine at hand: rows a unit sums side by side, counts of splits, what one block takes
// together, and what the closing arg-max moves on. None of it changes a bit.

#include "lane/schedule.h"
#include "plan/plan.h"

namespace tw::plan {

// Sets the fields of every launch and records the rule rows_a_warp for each product that takes several rows; in
// `missed`, when given, those that do not.
void set_running_parameters(const Knobs& knobs, lane::Schedule& schedule, std::vector<fuse::Missed>* missed = nullptr);

}  // namespace tw::plan
