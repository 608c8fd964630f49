#pragma once

// Small valid sections with what those of spatial/testing.h have not: sub-blocks, states, indices as data, two results,
// bands. What the tests of the certificate break.

#include "spatial/builder.h"
#include "spatial/testing.h"

namespace tw::spatial::testing {

// y = x + row, x and y of items * chunks tile rows of one tile: every item walks `chunks` sub-blocks and loads the one
// row again for each.
Result<Program> chunked_add(const Target& target, uint64_t items, uint64_t chunks);
// state row i += 1 in place, in `blocks` items of one tile: the row is gathered and scattered by an index each.
Result<Program> row_update(const Target& target, uint64_t rows, uint64_t blocks);
// state += x, tile by tile, an item walking `chunks` of them; the state has a tile row more.
Result<Program> state_chunks(const Target& target, uint64_t items, uint64_t chunks);
// state tile i_k = x_k for item k, the index read from tile k of a table of indices: distinct through data alone. Not a
// section that can be certified.
Result<Program> scattered_rows(const Target& target, uint64_t items);
// sum = a + b and product = a * b over flat rows of n elements, one tile an item.
Result<Program> two_results(const Target& target, uint64_t n);
// y = a joined with b, n elements each.
Result<Program> join(const Target& target, uint64_t n);
// y = row i of a flat table: checked, multiplied to an offset, and added to every column's.
Result<Program> element_gather(const Target& target, uint64_t rows, uint64_t cols);
// The running sum of row_sum_fold, its block count also read and checked in the section.
Result<Program> checked_fold(const Target& target, uint64_t blocks);
// `copies` times the same chain of a load, an add of a row and a store, each with a result of `tiles` one-tile items.
Result<Program> many_adds(const Target& target, uint64_t copies, uint64_t tiles);

}  // namespace tw::spatial::testing
