#pragma once

// The numbers of one attention, as every form of it sees them: extents, what each row may attend, and the window.

#include <cstdint>
#include <optional>
#include <string>

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// What a masked score is: below any real one, finite in every float format.
inline constexpr double kMasked = -1.0e30;

struct AttentionShape {
  // What says how many positions a row attends: row r attends P + r, or, of a bound that is absent, all.
  enum class Bound : uint8_t { Absent, Literal, Named };

  std::string tag;  // of program names: attn, causal_attn, full_attn
  uint64_t rows = 1;
  uint64_t heads = 1;  // of a row
  uint64_t kv_heads = 1;
  uint64_t key_width = 1;
  uint64_t value_width = 1;
  uint64_t cached = 1;     // positions of the cache
  uint64_t positions = 1;  // those that some row may attend
  double scale = 1;
  double softcap = 0;      // 0: none
  graph::Window window{};  // none when it keeps everything
  Bound bound = Bound::Absent;
  uint64_t position = 0;  // P of a literal bound
  bool sinks = false;

  [[nodiscard]] bool windowed() const { return window.kind != graph::Window::Kind::None; }
  [[nodiscard]] bool named() const { return bound == Bound::Named; }
  // Whether some row attends less than `positions`.
  [[nodiscard]] bool limited() const { return named() || windowed() || (bound == Bound::Literal && rows > 1); }
  // Query heads v of all rows: head v % heads of row v / heads.
  [[nodiscard]] uint64_t query_heads() const { return rows * heads; }
  [[nodiscard]] uint64_t group() const { return heads / kv_heads; }
  [[nodiscard]] uint64_t kv_head(uint64_t v) const { return v % heads / group(); }
  [[nodiscard]] uint64_t key_row() const { return kv_heads * key_width; }
  [[nodiscard]] uint64_t value_row() const { return kv_heads * value_width; }
  // Positions that the row attends. Requires a bound that is not named.
  [[nodiscard]] uint64_t attended(uint64_t row) const { return bound == Bound::Literal ? position + row : cached; }
  // Of the first `count` positions, how many of the oldest the window leaves out.
  [[nodiscard]] uint64_t left_out(uint64_t count) const;
  // The greatest P that a named bound may have.
  [[nodiscard]] uint64_t last_position() const { return cached + 1 - rows; }
};

// Operands of an attention by number.
inline constexpr size_t kQuery = 0, kKeys = 1, kValues = 2, kPosition = 3, kSinks = 4;
inline constexpr size_t kLutTable = 3, kLutPosition = 4;

// Refused: nothing of something, keys that heads cannot share evenly, a window of no positions, a literal position
// outside the cache.
Result<AttentionShape> shape_of(const graph::Attention& op, const OpView& view);
Result<AttentionShape> shape_of(const graph::FullAttention& op, const OpView& view);
Result<AttentionShape> shape_of(const graph::LutAttention& op, const OpView& view);

// The refusal with the op's result as its subject, when a section of an internal tensor was refused.
Result<Program> about(Result<Program> section, std::string_view subject);

}  // namespace tw::spatial::lower
