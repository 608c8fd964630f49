#pragma once

#include <cstdint>

#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// Where the carried memory of each sequence of a batch begins: sequence s's at slot slots[s], slots being `stride`
// elements apart. Without slots the sequences lie back to back.
struct SlotTable {
  const uint32_t* slots = nullptr;
  uint64_t stride = 0;
};

// The first element of a sequence, each of which takes `size` of them.
TW_INLINE constexpr uint64_t sequence_begin(const SlotTable& table, uint64_t sequence, uint64_t size) {
  return table.slots == nullptr ? sequence * size : table.slots[sequence] * table.stride;
}

}  // namespace tw::lane::cpu
