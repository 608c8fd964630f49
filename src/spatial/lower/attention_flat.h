#pragma once

// Attention over keys and values that lie flat, for widths that are not whole tiles: everything at once in three
// sections while all scores fit a page, or an item for each query head.

#include <vector>

#include "spatial/lower/attention_shape.h"

namespace tw::spatial::lower {

// Scores of all query heads side by side, their softmax, the weighted sum.
//
// Whether the scores and the result fit a page, and a tile has a row for each query head. Elsewhere the form is refused
// by the accumulator, or folds its rows one by one.
bool flat_applies(const AttentionShape& shape, const Target& target);
Result<std::vector<Program>> flat_attention(const AttentionShape& shape, const OpView& op);

// The probabilities of one query head an item, each from a tile of its own on; then the weighted sum, an item a block
// of columns where the result is wide. The positions must fit a page.
Result<std::vector<Program>> head_attention(const AttentionShape& shape, const OpView& op);

// ---- what both are made of ----

// NAME = sum over positions of probability * value, for every column of every query head. `stride`: elements from the
// probabilities of one query head to those of the next.
Result<Program> weighted_sum(const AttentionShape& shape, const OpView& op, const OpTensor& probabilities,
                             uint64_t stride);

}  // namespace tw::spatial::lower
