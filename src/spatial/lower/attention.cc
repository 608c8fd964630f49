#include "spatial/lower/attention.h"

#include <fmt/format.h>

#include "spatial/lower/attention_flat.h"
#include "spatial/lower/flash.h"
#include "spatial/lower/flash_grouped.h"
#include "spatial/lower/lower.h"

namespace tw::spatial::lower {
namespace {

// The positions of a block of keys become the columns of its scores, hence the square tile.
bool flash_applies(const Target& target, uint64_t key_width, uint64_t value_width) {
  return target.tile.square() && key_width > 0 && value_width > 0 && target.whole(key_width) &&
         target.whole(value_width);
}

Result<Lowered> lower_attention(const AttentionShape& shape, const OpView& view) {
  const Target& target = view.target;
  const std::string widths = fmt::format("keys {} and values {} wide", shape.key_width, shape.value_width);
  if (!flash_applies(target, shape.key_width, shape.value_width)) {
    if (flat_applies(shape, target)) {
      TW_TRY(std::vector<Program> sections, flat_attention(shape, view));
      return Lowered{std::move(sections), "flat",
                     fmt::format("{}, and {} scores fit a page of {}", widths, shape.query_heads() * shape.positions,
                                 target.accumulator_tiles)};
    }
    TW_TRY(std::vector<Program> sections, head_attention(shape, view));
    return Lowered{std::move(sections), "heads",
                   fmt::format("{} on tiles of {} x {}", widths, target.tile.rows, target.tile.cols)};
  }
  const std::string whole = fmt::format("{} are whole tiles of {}", widths, target.tile.cols);
  if (grouped_applies(shape, target))
    if (Result<std::vector<Program>> sections = grouped_attention(shape, view))
      return Lowered{std::move(*sections), "grouped flash",
                     fmt::format("{}, one row, {} heads share a key", whole, shape.group())};
  TW_TRY(std::vector<Program> sections, flash_attention(shape, view));
  return Lowered{std::move(sections), "flash", whole};
}

}  // namespace

bool attention_reads_dense(const Target& target, uint64_t heads, uint64_t kv_heads, uint64_t key_width,
                           uint64_t value_width) {
  return flash_applies(target, key_width, value_width) && kv_heads > 0 && heads % kv_heads == 0;
}

bool full_attention_reads_dense(const Target& target, uint64_t key_width, uint64_t value_width) {
  return flash_applies(target, key_width, value_width);
}

Result<Lowered> lower(const graph::Attention& op, const OpView& view) {
  TW_TRY(const AttentionShape shape, shape_of(op, view));
  return lower_attention(shape, view);
}

Result<Lowered> lower(const graph::FullAttention& op, const OpView& view) {
  TW_TRY(const AttentionShape shape, shape_of(op, view));
  return lower_attention(shape, view);
}

}  // namespace tw::spatial::lower
