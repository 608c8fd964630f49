#pragma once

// Attention over a cache. Which form runs decides how the cache lies: the flash forms walk it by tile rows, so keys and
// values are dense there; all others read them flat.

#include <cstdint>

#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// How the keys and values of an attention lie: dense where a flash form reads them (whole tiles on a square tile, heads
// that share keys evenly), else flat. Whoever writes into the cache asks the same question.
bool attention_reads_dense(const Target& target, uint64_t heads, uint64_t kv_heads, uint64_t key_width,
                           uint64_t value_width);
// The same of full attention.
bool full_attention_reads_dense(const Target& target, uint64_t key_width, uint64_t value_width);

}  // namespace tw::spatial::lower
