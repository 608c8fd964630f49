#pragma once

// How much a step does: what a benchmark holds against what the machine can.

#include <cstdint>
#include <span>

#include "lane/schedule.h"

namespace tw::lane {

struct Work {
  uint64_t weight_bytes = 0;  // of product weights read once a step, in their file formats
  uint64_t state_bytes = 0;   // of carried memory read: what is attended of caches, delta rules' memories, rings
  uint64_t products = 0;      // multiply-adds by weights and, where carried memory is counted, by that
  Work& operator+=(const Work& other);
  bool operator==(const Work&) const = default;
};

// Of one launch, by weights alone. A mixture counts the experts of one row for each of its rows' picks, at most all of
// them.
Work work_of(const Launch& launch);
Work work_of(const Schedule& schedule);

// The same, and what it does with carried memory when sequence s has taken before[s] positions. Each position is
// counted once however many rows and heads attend it.
Work work_of(const Launch& launch, const Schedule& schedule, std::span<const uint32_t> before);
Work work_of(const Schedule& schedule, std::span<const uint32_t> before);

}  // namespace tw::lane
