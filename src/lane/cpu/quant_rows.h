#pragma once

// Rows set in their quantized form: the words, scales and sums are copied, nothing is quantized again.

#include "lane/cpu/quant.h"

namespace tw::lane::cpu {

// Rows at.. of `to`, `cols` values wide (whole blocks of 32), become the `rows` rows of `from`. at = *position, or
// `fixed` without one, 1-based. Items: rows.
struct QuantRowsArgs {
  QuantView from;
  QuantView to;
  const int32_t* position = nullptr;
  uint32_t fixed = 1;
  uint64_t rows = 1, cols = 0;
  int words = 1;
};
uint64_t quant_rows_items(const QuantRowsArgs& args);
// The same code for all instruction sets.
void quant_rows(const QuantRowsArgs& args, Range range, std::byte* scratch);

}  // namespace tw::lane::cpu
