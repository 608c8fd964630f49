#pragma once

#include <cstdint>

#include "lane/cpu/store.h"

namespace tw::lane::cpu {

// Unit u of y: ha values from a + u * ha, then hb from b + u * hb. Must not overlap. Items: units.
struct JoinArgs {
  const float* a = nullptr;
  const float* b = nullptr;
  Store y;
  uint64_t units = 0, ha = 0, hb = 0;
};
TW_INLINE constexpr uint64_t items(const JoinArgs& a) { return a.units; }

}  // namespace tw::lane::cpu
