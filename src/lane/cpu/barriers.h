#pragma once

// Which launches may run without waiting for the ones before them.

#include <vector>

#include "lane/schedule.h"

namespace tw::lane::cpu {

// For each launch: whether it touches bytes that a launch since the last barrier writes, or writes bytes that one
// touches. Bytes, not buffers: the arena gives the same bytes to buffers whose lives do not overlap. `uses_shared[i]`:
// launch i works in the memory that launches share.
std::vector<bool> barriers_before(const Schedule& schedule, const std::vector<bool>& uses_shared);

}  // namespace tw::lane::cpu
