#pragma once

// The matrix product: y = x w, x: m x k, w: k x n, y: m x n, all dense; m = 1 is the flat row. Any m, k, n. It streams
// the contraction in blocks and keeps the running sums in the accumulator; the result is cut over items so that many
// sites work. Every output is one sum, ascending over k from 0, in the accumulator precision.
//
// The operands are what their OpTensor says, else E (integers: Z). The result is what its OpTensor says, else E (Z):
// one that is not the accumulator's precision is rounded once, after the sum. Integers are multiplied exactly.

#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// What an item does: m x n tiles of the result, and the units of the contraction that it takes in one block. A unit is
// the least run of elements that is whole tiles of both operands: one tile where tiles are square.
struct ProductBlocks {
  uint64_t m = 1;
  uint64_t n = 1;
  uint64_t units = 1;
  uint32_t pages = 2;  // of x and w
};

// By tile products. Requires blocks that divide; precisions that the target multiplies are the caller's to choose
// (refused by name).
Result<Program> product_tiles(const OpView& op, const ProductBlocks& blocks);
// By a loop nest over one unit a block, for operands that the target multiplies no tiles of. `n` tiles an item.
Result<Program> product_loops(const OpView& op, uint64_t n, uint32_t pages = 2);

// The product with the form and the blocks that fit: op[0] is x, op[1] is w.
Result<Program> matmul_section(const OpView& op);

}  // namespace tw::spatial::lower
