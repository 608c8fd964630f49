#pragma once

// The rule `sequences`: a batch's launches over its sequences.
//
// What every sequence of a batch has for itself is laid out as one array (sequence_arrays.h); the launches that do the
// same for each sequence on its part become one launch over all of them (sequence_kinds.h), which gives every kernel
// more work at a time and the step fewer waits. The merged launch takes the place of the last sequence's, when nothing
// between that and the others writes what they touch or reads what they write. No value changes.

#include <vector>

#include "fuse/optimize.h"
#include "lane/schedule.h"

namespace tw::plan {

// What a run of the pass did, for tests and measurements.
struct SequenceCounts {
  uint64_t merged = 0;  // launches that stand for one a sequence
  uint64_t steps = 0;   // buffers, launches and operands that were looked at: near-linear in the schedule
};

// Requires the schedule of a batch with its buffers, none of them placed. Records a firing `sequences` for every merged
// launch; in `missed`, when given, the first sequence's launch of each run that stays apart.
SequenceCounts merge_sequences(lane::Schedule& schedule, std::vector<fuse::Missed>* missed = nullptr);

}  // namespace tw::plan
