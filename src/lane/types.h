#pragma once

// The words that launches and schedules share: buffers by id, where a result lands, numerics.

#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::lane {

// An index into Schedule::buffers.
enum class BufferId : uint32_t {};
inline constexpr BufferId kNoBuffer{0xffffffffU};
constexpr uint32_t index(BufferId id) { return static_cast<uint32_t>(id); }
constexpr bool present(BufferId id) { return id != kNoBuffer; }

// Values of one quantized block of activations (docs/numerics.md).
inline constexpr uint32_t kQuantBlock = 32;
// Rows of a chunk of a delta rule, and its widest head, under Order::FastDelta (docs/numerics.md).
inline constexpr uint32_t kDeltaChunk = 32;
inline constexpr uint64_t kDeltaChunkWidth = 256;
// The longest chunk of rows of one sequence.
inline constexpr uint32_t kMaxChunk = 512;

// How products by quantized weights read their activation.
enum class Numerics : uint8_t {
  Precise,  // f32, weights widened, sums in f64
  Int8,     // one int8 word a value, a scale per 32
  Int8x2,   // two int8 words a value, a scale per 32
};
std::string_view name(Numerics numerics);  // "precise", "int8", "int8x2"
std::optional<Numerics> parse_numerics(std::string_view text);

// The order of sums: Strict keeps every promise of docs/numerics.md, another gives up those that it names there.
enum class Order : uint8_t {
  Strict,
  FastDelta,  // delta rules take many rows in chunks
};
std::string_view name(Order order);  // "strict", "fast-delta"
std::optional<Order> parse_order(std::string_view text);

constexpr bool quantizes(Numerics numerics) { return numerics != Numerics::Precise; }

// What a buffer's elements are stored as. 16-bit elements are widened exactly when read, rounded to nearest when
// written.
enum class Dtype : uint8_t { F32, I32, F16, BF16 };
std::string_view name(Dtype dtype);
constexpr uint32_t bytes_of(Dtype dtype) { return dtype == Dtype::F32 || dtype == Dtype::I32 ? 4 : 2; }

// Unit u of a tensor begins at element u * pitch + offset.
struct Part {
  uint64_t pitch = 0;
  uint64_t offset = 0;
  bool operator==(const Part&) const = default;
};

// Rows of a table from a 1-based row on: the item of a parameter, or a literal. `pitch` is the width of a row.
struct RowAt {
  BufferId param = kNoBuffer;
  uint32_t fixed = 0;  // used when there is no param
  uint64_t pitch = 0;
  bool operator==(const RowAt&) const = default;
};

// Where a result lands: the whole of `buf`, rows of it, units of it, or units inside the selected rows.
struct Dst {
  BufferId buf = kNoBuffer;
  std::optional<RowAt> row;
  std::optional<Part> unit;

  [[nodiscard]] bool own() const { return !row && !unit; }
  bool operator==(const Dst&) const = default;
};

// Which forms of its result a launch writes.
struct OutForms {
  bool plain = true;
  bool quantized = false;
  bool operator==(const OutForms&) const = default;
};

}  // namespace tw::lane
