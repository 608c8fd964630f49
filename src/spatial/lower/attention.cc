#include "spatial/lower/attention.h"

namespace tw::spatial::lower {
namespace {

// The positions of a block of keys become the columns of its scores, hence the square tile.
bool flash_applies(const Target& target, uint64_t key_width, uint64_t value_width) {
  return target.tile.square() && key_width > 0 && value_width > 0 && target.whole(key_width) &&
         target.whole(value_width);
}

}  // namespace

bool attention_reads_dense(const Target& target, uint64_t heads, uint64_t kv_heads, uint64_t key_width,
                           uint64_t value_width) {
  return flash_applies(target, key_width, value_width) && kv_heads > 0 && heads % kv_heads == 0;
}

bool full_attention_reads_dense(const Target& target, uint64_t key_width, uint64_t value_width) {
  return flash_applies(target, key_width, value_width);
}

}  // namespace tw::spatial::lower
