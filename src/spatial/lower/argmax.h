#pragma once

// The place of the first maximum of every row of x, from 1: a scan from the first item, replaced only by a strictly
// greater one. A NaN in front stays, one elsewhere never wins. Rows of a tile are scanned side by side; the result is
// flat, 1 x m, where tile rows are whole tiles of it, else dense, m x 1.

#include <cstdint>
#include <vector>

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// An item a tile row, which is loaded whole.
Result<Program> argmax_rows(const OpView& op);
// An item a block of a tile row, then a tree of merges. The winners travel as a value, at the precision of x, and a
// position, an integer: there is no length at which either would be rounded.
Result<std::vector<Program>> argmax_blocked(const OpView& op);

// The fan-ins of the merges of `blocks` winners, none larger than `most` and as even as can be; their product is at
// least `blocks`. Empty for one block. Requires most >= 2.
std::vector<uint64_t> merge_fans(uint64_t blocks, uint64_t most);

}  // namespace tw::spatial::lower
