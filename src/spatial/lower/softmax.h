#pragma once

// Softmax of rows: e^(x - max) / sum e^(x - max), one reciprocal a row. A sink is one more logit of a row: it counts in
// the maximum and in the sum, and has no column in the result.

#include <vector>

#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// op[0]: rows x cols; op[1], if there: the sinks, rows x 1, or 1 x 1 for all rows. `precision` is what operands and
// result are stored as, unless their OpTensor says: E, or the accumulator's where the result decides something (a
// rounding by d of a router's logit scales its weight by e^d).
//
// Flat, all rows in one item. Refused by the accumulator when they do not fit a page.
Result<Program> softmax_section(const OpView& op, Precision precision);
// Dense, an item a tile row. Refused when a row does not fit a page.
Result<Program> softmax_rows(const OpView& op, Precision precision);
// Flat or dense, rows of any width: the maxima, the sums, the result. Flat takes one row, or rows of whole tiles and no
// sinks of their own.
Result<std::vector<Program>> softmax_streamed(const OpView& op, Precision precision, bool dense);

}  // namespace tw::spatial::lower
