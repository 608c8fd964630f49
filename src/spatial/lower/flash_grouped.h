#pragma once

// Decoding with shared keys: one item a key head, the query heads that share it are rows of one tile row, so that each
// tile of the cache is streamed once for all of them. Sections: queries by key head, (their sinks,) the fold, and the
// result back in the order of the heads.

#include <vector>

#include "spatial/lower/attention_shape.h"

namespace tw::spatial::lower {

// Whether the form is for the shape at all: one row, and heads that share a key and fit a tile row.
bool grouped_applies(const AttentionShape& shape, const Target& target);
// Refused where the flash form is, and where a section does not fit a site.
Result<std::vector<Program>> grouped_attention(const AttentionShape& shape, const OpView& op);

}  // namespace tw::spatial::lower
