#pragma once

// Attention as one fold over the tile rows of a cache: online softmax. An item is a tile row of query rows of one head;
// a block is a tile row of positions. The largest score so far, the sum of weights and the weighted sum are carries in
// the accumulator precision: e^(x - m) = e^(x - m') e^(m' - m), so nothing is approximated by streaming.
//
// Keys, values, queries and the result are dense, keys and values whole tiles, the tile square: the positions of a
// block become the columns of its scores.

#include <functional>
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
// Refused where the tile is not square, or a key or value not whole tiles.
Result<void> check_flash(const AttentionShape& shape, const OpView& op);
// The section that lays out the op's sinks for `items` items, which becomes fold.sinks: that of each row of each item.
using SinkOf = std::function<std::optional<uint64_t>(uint64_t item, uint64_t row)>;
Result<Program> flash_sinks(FlashFold& fold, const OpView& op, uint64_t items, const SinkOf& sink_of);

// An item a query tile and head: the sinks of its rows where there are sinks, and the fold. Refused by check_flash, or
// where the fold does not fit a site.
Result<std::vector<Program>> flash_attention(const AttentionShape& shape, const OpView& op);

}  // namespace tw::spatial::lower
