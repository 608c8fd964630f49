#pragma once

// Rows of a projection whose file is for adjacent pairs (2i, 2i + 1), in the order that makes them split halves
// (i, i + half). The products of queries and keys are the same sums in another order.

#include <cstdint>
#include <vector>

namespace tw::model {

struct PairRows {
  uint32_t first = 0;  // file row of the first head
  uint32_t heads = 1;
  uint32_t width = 0;    // rows of a head
  uint32_t from = 0;     // of these, the run that rotates begins here ...
  uint32_t rotated = 0;  // ... and is this long; 0 keeps every row in place
};

// For every row the file row it takes: row from + i is the file's row from + 2i, row from + i + half the one after it.
std::vector<uint32_t> split_half_order(const PairRows& rows);

}  // namespace tw::model
