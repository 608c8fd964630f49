#pragma once

// Lays the buffers that every sequence of a batch has for itself out as one array each.

#include <cstdint>
#include <vector>

#include "lane/schedule.h"

namespace tw::plan {

// What the launches of a batch tell the sequences apart by.
struct Positions {
  lane::BufferId array = lane::kNoBuffer;  // absent: the positions do not lie in one array
  std::vector<lane::BufferId> of;          // sequence b's is part b of the array
};

// Requires a batch's schedule with its buffers, none of them placed.
//
// A family is a buffer a sequence, of the same base name, size, type, fill, layout and forms: state, or computed in the
// step. Its members become aliases of the parts of an array. That array is a table of the step when every member is
// only read to be set as its sequence's row there: the sets disappear and what they computed is the members' writers'.
// Otherwise it is a new buffer "<base name>_s" (no family where that name is taken). The positions that are set before
// the step become one array as well.
//
// No value changes. Time near-linear in buffers and launches; `steps` counts what was looked at.
Positions lay_out_arrays(lane::Schedule& schedule, uint64_t& steps);

}  // namespace tw::plan
