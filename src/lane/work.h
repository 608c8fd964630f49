#pragma once

// How much a step does: what a benchmark holds against what the machine can.

#include <cstdint>

#include "lane/schedule.h"

namespace tw::lane {

struct Work {
  uint64_t weight_bytes = 0;  // of product weights read once a step, in their file formats
  uint64_t products = 0;      // multiply-adds by weights
  bool operator==(const Work&) const = default;
};

// Of one launch. A mixture counts the experts of one row for each of its rows' picks, at most all of them.
Work work_of(const Launch& launch);
Work work_of(const Schedule& schedule);

}  // namespace tw::lane
