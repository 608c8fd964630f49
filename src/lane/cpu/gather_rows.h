#pragma once

// Rows of a table that lies in a checkpoint, by index.

#include <cstddef>
#include <cstdint>

#include "graph/constants.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// out[r] = scale * row index[r] of the table (1-based), each value of a quantized row rounded once to f32 before the
// scale; a scale of 1 multiplies nothing. Requires every index to be a row of the table. Items: rows.
struct GatherRowsArgs {
  const graph::Rows* table = nullptr;
  const int32_t* index = nullptr;
  float* out = nullptr;  // dense rows of table->row_values
  uint64_t rows = 0;
  float scale = 1;
};
void gather_rows(const GatherRowsArgs& args, Range range, std::byte* scratch);

}  // namespace tw::lane::cpu
