#pragma once

// Checks a schedule against the invariants that every lane relies on; runs after planning in debug builds and in tests.

#include <string>
#include <vector>

#include "lane/schedule.h"

namespace tw::lane {

// Codes:
//   S0  a buffer id, shape or place is out of range
//   S1  an op is computed by no launch, or a launch names an op that is not there
//   S2  a value is read before it is wholly written (or is not one that is there before the step)
//   S3  a value that is neither state nor a table nor set row by row is written more than once
//   S4  a launch writes elements that it also reads, other than in place by its definition
//   S5  an attention reads a cache before this step's rows are in it
//   S6  a quantized form of a length that is not whole blocks
//   S7  a view of something that is rewritten while the view is still to be read
//   S8  an alias that leaves its buffer, has another element type, or ends in no buffer
//   S9  a batch's field in the schedule of one sequence
//   S10 a firing names an op that is not there
//   S11 two buffers in use at the same time share bytes of the arena
//   S12 a delta rule takes rows otherwise than the schedule's order says
struct Finding {
  std::string code;
  std::string about;  // "launch 12 (rmsnorm)" or a buffer's name
  std::string text;
};

std::vector<Finding> verify(const Schedule& schedule);

}  // namespace tw::lane
