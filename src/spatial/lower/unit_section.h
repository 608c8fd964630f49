#pragma once

// Sections over units: runs of `width` values of a row that are normalized by themselves. A unit is whole tiles, or the
// whole row. In the flat layout an item owns one unit; in the dense one it owns the units that a tile row has one below
// the other, one a row of the tile.
//
// A unit that fits a page is worked on in one section (see norm.h). One that does not is streamed: a fold section takes
// one number of each unit, a map section applies numbers to values.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spatial/builder.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

struct UnitGrid {
  // Of the rows of a tensor. Requires `width` to be whole tiles, or the row's (the tensor's, when it is flat).
  static UnitGrid flat(const OpTensor& tensor, uint64_t width, const Target& target);
  static UnitGrid dense(const OpTensor& tensor, uint64_t width, const Target& target);

  uint64_t rows = 1, cols = 1;  // as the tensor is declared
  uint64_t width = 1;
  uint64_t tiles = 1;     // of a unit
  uint64_t across = 1;    // units side by side
  uint64_t parallel = 1;  // rows of the stages
  uint64_t count = 1;     // of items, or groups of items, in the order of the tiles

  // Tiles first to first + wide - 1 of a unit.
  [[nodiscard]] TileRect rect(uint64_t unit, uint64_t first, uint64_t wide) const {
    return {unit / across, unit % across * tiles + first, 1, wide};
  }
  [[nodiscard]] std::string text() const;  // "3x288", "5x4x64"
};

// The builder of a section, its tensors each declared once.
class UnitSection {
 public:
  // Values are stored at `precision` unless their tensor says otherwise.
  static Result<UnitSection> open(const OpView& op, const UnitGrid& grid, Precision precision);

  Builder& builder() { return builder_; }
  [[nodiscard]] const UnitGrid& grid() const { return grid_; }
  [[nodiscard]] Precision precision() const { return precision_; }
  // Loads of a tensor laid out as the grid is, of one row of `width` values, of a tile a unit, of an m x 1 column.
  BufferId load_units(const OpTensor& tensor, const std::string& what, uint64_t tiles, Block address, uint32_t pages);
  BufferId load_row(const OpTensor& tensor, const std::string& what, uint64_t tiles, Block address, uint32_t pages);
  BufferId load_numbers(const std::string& tensor, Block address);
  BufferId load_ones(const std::string& result);

  [[nodiscard]] std::vector<Iter> space(uint64_t columns) const { return {rows(grid_.parallel), cols(columns)}; }

 private:
  UnitSection(const OpView& op, const UnitGrid& grid, Precision precision, Precision accumulator)
      : grid_(grid), precision_(precision), builder_(op.target, accumulator) {}
  BufferId load(const OpTensor& tensor, uint64_t rows, uint64_t cols, const std::string& what, uint64_t tiles,
                Block address, uint32_t pages);

  UnitGrid grid_;
  Precision precision_;
  Builder builder_;
  std::map<std::string, TensorId> tensors_;
};

// A tensor of one number a unit, at the accumulator precision: one tile a unit, with the number in every column.
struct UnitFold {
  std::string program;
  std::string result;
  std::vector<const OpTensor*> values;
  std::vector<std::string> numbers;  // made by earlier folds
  Expr term;                         // of arg(0), ...: values, then numbers
  Pool pool = Pool::Sum;
  bool zero_is_neutral = true;     // the term of a padding column, whose values are 0, changes nothing
  Expr finish;                     // of arg(0) the folded value, then numbers, then the sink
  const OpTensor* sink = nullptr;  // m x 1, or 1 x 1 for all rows
};
Result<Program> unit_fold(const OpView& op, const UnitGrid& grid, const UnitFold& fold);

// The op's result, of values, numbers and rows that are the same for every unit.
struct UnitMap {
  std::string program;
  std::string what;  // of the claim
  std::vector<const OpTensor*> values;
  std::vector<std::string> numbers;
  std::vector<const OpTensor*> shared;
  Expr body;  // of arg(0), ...: values, numbers, shared
};
Result<Program> unit_map(const OpView& op, const UnitGrid& grid, const UnitMap& map);

}  // namespace tw::spatial::lower
