#pragma once

// Products as docs/numerics.md writes them, from the rows of the file, for tests.

#include "graph/constants.h"
#include "lane/cpu/product.h"

namespace tw::lane::cpu::reference {

// Output `o` of row `r`: rows.row(o) by row r of the activation of `args` (its parts are not looked at).
float product(const graph::Rows& rows, uint64_t o, const ProductArgs& args, uint64_t r);

}  // namespace tw::lane::cpu::reference
