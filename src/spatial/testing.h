#pragma once

// Targets and small programs that the tests of this component and of those built on it share.

#include <string>
#include <string_view>

#include "spatial/builder.h"
#include "spatial/target_file.h"

namespace tw::spatial::testing {

// A target of the repository's targets/ by name; aborts when it is not there.
Target shipped_target(std::string_view name);
// The one of that name.
const Target& toy_square();
// toy_square with other tiles, page and memory.
Target toy_target(TileShape tile, uint32_t accumulator_tiles, uint64_t local_bytes = uint64_t{1} << 30);

// c = a + b over flat rows of n elements: two loads, one stage, one store, one item.
Result<Program> flat_add(const Target& target, uint64_t n);
// A fold by hand over `blocks` tiles of x: the running sum of a row, carried, with a block count from data when
// counted.
Result<Program> row_sum_fold(const Target& target, uint64_t blocks, bool counted);
// y = rows of the table that the index names, through an index page: an indirect load.
Result<Program> tile_gather(const Target& target, uint64_t rows);
// y = a x b over whole tiles of a square target: a tile product streamed in blocks of one tile of the contraction.
Result<Program> streamed_product(const Target& target, uint64_t m_t, uint64_t n_t, uint64_t k_t);

// What holds of a text form whatever the bytes: they are read or refused, what is read can be validated, and what is
// written of it reads back equal. Aborts when it does not.
void check_form(std::string_view bytes, Result<Program> (*read)(std::string_view text, std::string_view label),
                std::string (*write)(const Program& program));

}  // namespace tw::spatial::testing
