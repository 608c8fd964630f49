#pragma once

// Whole units: for sizes known to be far below 2^64. base/checked.h has what a file may break.

#include <cstdint>

namespace tw {

constexpr uint64_t ceil_div(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }
constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return ceil_div(value, unit) * unit; }

}  // namespace tw
