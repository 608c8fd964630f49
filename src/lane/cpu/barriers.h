#pragma once

// Which launches may run without waiting for the ones before them.

#include <vector>

#include "lane/schedule.h"

namespace tw::lane::cpu {

// How a launch is run: `shared`: it works in the memory that launches share; `solo`: all its calls are (call.h), so
// what it hands to the next such launch stays on one thread.
struct LaunchRun {
  bool shared = false;
  bool solo = false;
};

// For each launch: whether it touches bytes that a launch since the last barrier writes, or writes bytes that one
// touches, and the two are not both solo. Bytes, not buffers: the arena gives the same bytes to buffers whose lives do
// not overlap.
std::vector<bool> barriers_before(const Schedule& schedule, const std::vector<LaunchRun>& runs);

}  // namespace tw::lane::cpu
