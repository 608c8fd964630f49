#pragma once

// A spatial target as data: what a lowering, the certificate and the placement need to know of a chip. Targets are
// files (targets/*.toml, read by target_file.h); nothing in the code knows one by name.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spatial/precision.h"

namespace tw::spatial {

// The unit of storage, movement and computation: rows x cols elements, row-major.
struct TileShape {
  uint32_t rows = 1;
  uint32_t cols = 1;

  [[nodiscard]] uint64_t size() const { return uint64_t{rows} * cols; }
  [[nodiscard]] bool square() const { return rows == cols; }
  bool operator==(const TileShape&) const = default;
};

// What a datapath may lack. A program that needs one the target does not list is refused by that name.
enum class Capability : uint8_t {
  IndirectTiles,     // a load or store whose tile address comes from a page
  IndirectElements,  // a body that reads at an index that is data
  DataTrips,         // a fold whose block count is data
  ArgMax,            // the arg-max pool
  FloorDiv,
  Exp,
  Ln,
  Recip,
  Rsqrt,
  Silu,
};
inline constexpr int kCapabilities = 10;
std::string_view name(Capability capability);  // "indirect_tiles", ...
std::optional<Capability> parse_capability(std::string_view text);

struct Target {
  std::string name;
  std::string description;  // one sentence, for reports
  TileShape tile;
  uint32_t site_rows = 1;  // the grid of sites
  uint32_t site_cols = 1;
  uint64_t local_bytes = 0;  // local memory of one site
  // The most tiles a page written by a compute stage may have: A of the lowerings.
  uint32_t accumulator_tiles = 1;
  // What a section of reals, and one of integers, accumulates in. Absent with its datapath.
  std::optional<Precision> real_accumulator;
  std::optional<Precision> integer_accumulator;
  // E and Z: what elementwise arithmetic of reals and of integers is stored in between sections.
  std::optional<Precision> real_element;
  std::optional<Precision> integer_element;
  // Everything a page may be stored as, the above included. Its integers are what an index may use.
  std::set<Precision> precisions;
  // What the operands of a tile product may be.
  std::set<Precision> matmul_operands;
  // The reduce engine multiplies each term by a tile of ones, which a printer must supply.
  bool reduce_needs_scaler = false;
  std::set<Capability> capabilities;

  [[nodiscard]] uint64_t sites() const { return uint64_t{site_rows} * site_cols; }
  [[nodiscard]] bool has(Capability capability) const { return capabilities.contains(capability); }
  [[nodiscard]] bool has(Precision precision) const { return precisions.contains(precision); }
  // T(n): tiles of a flat row of n elements, at least 1.
  [[nodiscard]] uint64_t tiles(uint64_t elements) const;
  // wide(n): a row of n elements does not fit a page that a compute stage writes.
  [[nodiscard]] bool wide(uint64_t elements) const { return tiles(elements) > accumulator_tiles; }
  // whole(n): n elements end at the end of a tile.
  [[nodiscard]] bool whole(uint64_t elements) const { return elements % tile.cols == 0; }
  // blk(t): the largest divisor of t that a computed page may have.
  [[nodiscard]] uint64_t block_of(uint64_t tiles) const;

  bool operator==(const Target&) const = default;
};

// ---- what a lowering asks for; `subject` is the op's result, which a refusal is about ----

Result<Precision> real_element(const Target& target, std::string_view subject);
Result<Precision> integer_element(const Target& target, std::string_view subject);
// The accumulator, and dtype of scratch pages, of a section whose result is `result`.
Result<Precision> accumulator_for(const Target& target, Precision result, std::string_view subject);
// I(space): the smallest integer the target has that holds every magnitude up to `space`. Nothing is ever wrapped: the
// refusal names the precision that would be needed.
Result<Precision> index_precision(const Target& target, uint64_t space, std::string_view subject);

// Faults of a target made by hand or read from a file, one sentence each, with the key it is about.
struct TargetFault {
  std::string key;
  std::string text;
};
std::vector<TargetFault> target_faults(const Target& target);

}  // namespace tw::spatial
