#pragma once

// Tensors of a program: what memory holds between sections, stored as a row-major grid of tiles.

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "spatial/precision.h"
#include "spatial/target.h"

namespace tw::spatial {

// Input: read. Output: this section's result, written whole. Param: a weight or a compile-time table, read.
// State: updated in place, wholly or in part; what is not written stays.
enum class TensorRole : uint8_t { Input, Output, Param, State };

// ---- what a tensor holds before anything writes it ----

struct ZeroInit {
  bool operator==(const ZeroInit&) const = default;
};
// One number in every element. Equal when the bits are.
struct RealInit {
  double value = 0;
  bool operator==(const RealInit& o) const {
    return std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(o.value);
  }
};
struct IntegerInit {
  int64_t value = 0;
  bool operator==(const IntegerInit&) const = default;
};
// Tables, row-major over the logical extent. Shared, never changed; equal when the contents are.
struct IntegerValues {
  std::shared_ptr<const std::vector<int64_t>> values;
  bool operator==(const IntegerValues& o) const;
};
struct RealValues {
  std::shared_ptr<const std::vector<double>> values;
  bool operator==(const RealValues& o) const;
};
// Bound by name before the program runs: a weight of a checkpoint, an argument, a memory carried from step to step.
struct GivenInit {
  bool operator==(const GivenInit&) const = default;
};
// No data of its own: another section of the composition produces it. One that no section produces is refused there.
struct ExternalInit {
  bool operator==(const ExternalInit&) const = default;
};

using Init = std::variant<ZeroInit, RealInit, IntegerInit, IntegerValues, RealValues, GivenInit, ExternalInit>;

IntegerValues integer_values(std::vector<int64_t> values);
RealValues real_values(std::vector<double> values);

// ---- tensors ----

struct Tensor {
  std::string name;  // what unifies it across sections
  TensorRole role = TensorRole::Input;
  uint64_t rows = 1;
  uint64_t cols = 1;
  Precision dtype = Precision::F32;
  Init init = ExternalInit{};

  [[nodiscard]] uint64_t size() const { return rows * cols; }
  // One row: element p lies in tile p / tile.cols, tile row 0. Any other extent is dense.
  [[nodiscard]] bool flat() const { return rows == 1; }
  [[nodiscard]] bool result() const { return role == TensorRole::Output || role == TensorRole::State; }
  bool operator==(const Tensor&) const = default;
};

// The grid of tiles a tensor is stored as. Tile (i, j) has the linear number i * cols + j; elements outside the extent
// are padding, which is zero in memory.
struct TileGrid {
  uint64_t rows = 1;
  uint64_t cols = 1;

  [[nodiscard]] uint64_t tiles() const { return rows * cols; }
  bool operator==(const TileGrid&) const = default;
};
TileGrid grid_of(const Tensor& tensor, TileShape tile);

// Where the element (row, col) of a tensor is stored.
struct TilePlace {
  uint64_t tile = 0;     // linear number in the grid
  uint64_t element = 0;  // row-major in the tile
};
TilePlace place_of(const Tensor& tensor, TileShape tile, uint64_t row, uint64_t col);

}  // namespace tw::spatial
