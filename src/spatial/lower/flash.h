#pragma once

// Attention as one fold over the tile rows of a cache: online softmax. An item is a tile row of query rows of one head;
// a block is a tile row of positions. The largest score so far, the sum of weights and the weighted sum are carries in
// the accumulator precision: e^(x - m) = e^(x - m') e^(m' - m), so nothing is approximated by streaming.
//
// Keys, values, queries and the result are dense, keys and values whole tiles, the tile square: the positions of a
// block become the columns of its scores.

#include <optional>
#include <string>

#include "spatial/lower/attention_shape.h"

namespace tw::spatial::lower {

// The fold itself. `grouped`: each item is a key head, the query heads that share it are rows of one tile row: the
// queries are (kv_heads * tile rows) x key_width, the result likewise, one query row in all.
struct FlashFold {
  const Target& target;
  AttentionShape shape;
  OpTensor query, keys, values;
  std::optional<OpTensor> position;  // of a named bound
  std::optional<OpTensor> sinks;     // of each item a tile: the sinks of its rows
  OpTensor result;
  bool grouped = false;
};
// The section with that many pages of what it streams.
Result<Program> flash_fold(const FlashFold& fold, uint32_t pages);

// Sections of an item a query tile and head: the sinks of its rows where there are sinks, and the fold. Refused where
// the tile is not square, a key or value is not whole tiles, or the fold does not fit a site.
Result<std::vector<Program>> flash_attention(const AttentionShape& shape, const OpView& op);

}  // namespace tw::spatial::lower
