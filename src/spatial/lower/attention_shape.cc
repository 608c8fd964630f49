#include "spatial/lower/attention_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "spatial/lower/index.h"

namespace tw::spatial::lower {
namespace {

using Kind = graph::Window::Kind;

Result<void> check_extents(const AttentionShape& shape, const OpView& view) {
  const std::pair<std::string_view, uint64_t> extents[] = {{"query rows", shape.rows},
                                                           {"cached positions", shape.cached},
                                                           {"columns in a key", shape.key_width},
                                                           {"columns in a value", shape.value_width}};
  for (const auto& [what, count] : extents)
    if (count == 0)
      return refuse(RefusalKind::Unsupported, view.subject(), fmt::format("attention with 0 {}", what),
                    "Give it at least one of each.");
  if (shape.windowed() && shape.window.size == 0)
    return refuse(RefusalKind::Unsupported, view.subject(), "a window of 0 positions keeps nothing",
                  "Keep at least one position.");
  return {};
}

// How many positions rows attend, and where the cache ends for all of them.
Result<void> bound_rows(AttentionShape& shape, const OpView& view, size_t position) {
  shape.positions = shape.cached;
  if (!view.has(position)) return {};
  if (shape.rows > shape.cached)
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("{} rows do not fit a cache of {} positions", shape.rows, shape.cached),
                  "Attend fewer rows, or cache more positions.");
  const std::optional<int64_t> literal = literal_of(view[position]);
  shape.bound = literal ? AttentionShape::Bound::Literal : AttentionShape::Bound::Named;
  if (!literal) return {};
  if (*literal < 1 || *literal > static_cast<int64_t>(shape.last_position()))
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("position {} of {} rows over {} positions must be 1 to {}", *literal, shape.rows,
                              shape.cached, shape.last_position()),
                  "Name a position that leaves room for all rows.");
  shape.position = static_cast<uint64_t>(*literal);
  shape.positions = shape.position + shape.rows - 1;
  return {};
}

Result<AttentionShape> shape_of(AttentionShape shape, const OpView& view, size_t position = kPosition) {
  if (shape.heads == 0 || shape.kv_heads == 0 || shape.heads % shape.kv_heads != 0)
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("{} query heads cannot share {} key heads evenly", shape.heads, shape.kv_heads),
                  "Choose a number of key heads that divides the query heads.");
  shape.rows = view[kQuery].rows;
  shape.key_width = view[kQuery].cols / shape.heads;
  shape.value_width = view[kValues].cols / shape.kv_heads;
  shape.cached = view[kKeys].rows;
  TW_TRY_VOID(check_extents(shape, view));
  TW_TRY_VOID(bound_rows(shape, view, position));
  // A window that reaches over all positions drops none.
  if (shape.windowed() && shape.window.size >= shape.positions) shape.window = {};
  return shape;
}

}  // namespace

uint64_t AttentionShape::left_out(uint64_t count) const {
  switch (window.kind) {
    case Kind::None: return 0;
    case Kind::Sliding: return count - std::min<uint64_t>(count, window.size);
    case Kind::Chunked: return (count - 1) / window.size * window.size;
  }
  TW_CHECK(false, "window kind {}", static_cast<int>(window.kind));
}

Result<AttentionShape> shape_of(const graph::Attention& op, const OpView& view) {
  AttentionShape shape{.tag = "attn",
                       .heads = op.heads,
                       .kv_heads = op.kv_heads,
                       .scale = static_cast<double>(op.scale),
                       .softcap = static_cast<double>(op.softcap),
                       .window = op.window,
                       .sinks = view.has(kSinks)};
  if (view[kQuery].rows > 1) shape.tag = view.has(kPosition) ? "causal_attn" : "full_attn";
  return shape_of(std::move(shape), view);
}

Result<AttentionShape> shape_of(const graph::FullAttention& op, const OpView& view) {
  return shape_of({.tag = "full_attn", .heads = op.heads, .kv_heads = op.heads, .scale = static_cast<double>(op.scale)},
                  view);
}

Result<AttentionShape> shape_of(const graph::LutAttention& op, const OpView& view) {
  return shape_of({.tag = "lut_attn", .heads = op.heads, .kv_heads = op.kv_heads}, view, kLutPosition);
}

Result<Program> about(Result<Program> section, std::string_view subject) {
  if (section) return section;
  Refusal refusal = section.refusal();
  refusal.subject = subject;
  return refusal;
}

}  // namespace tw::spatial::lower
