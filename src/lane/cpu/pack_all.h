#pragma once

// Packs many matrices at once: into one block of memory, in the order of the file, shared out to the threads by pieces.

#include <vector>

#include "base/result.h"
#include "lane/cpu/large_memory.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/weights.h"

namespace tw::lane::cpu {

struct PackItem {
  graph::Rows rows;
  Packed shape;               // its data is set by pack_all
  bool input_rows = false;    // rows hold inputs (pack_input_rows)
  bool of_file = false;       // rows lie in a checkpoint
  std::vector<float> turned;  // what `rows` points into when the values had to be put in order
};

// The memory that the items' shapes point into. Refuses when the system has no room for it, and when interrupted.
Result<LargeMemory> pack_all(std::vector<PackItem>& items, Pool& pool, const Preparation& preparation);

}  // namespace tw::lane::cpu
