#pragma once

// Programs made of anything, for tests of the text and JSON forms: ids, sizes and names need not fit.

#include <random>

#include "spatial/program.h"

namespace tw::spatial::testing {

Program any_program(std::mt19937& random);
// A tree of at most `nodes` nodes over `operands` operands.
Expr any_expr(std::mt19937& random, int nodes, uint32_t operands);

}  // namespace tw::spatial::testing
