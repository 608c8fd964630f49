#pragma once

// What memory holds between sections: tensors by name, each as its grid of tiles in its own precision, bit for bit as a
// device would hold them. Elements outside a tensor's extent are zero.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spatial/tensor.h"

namespace tw::spatial::evaluate {

// One tensor's storage.
struct Stored {
  Tensor tensor;  // name, extent and precision; the role and the init of whoever declared it first
  TileGrid grid;
  std::vector<std::byte> codes;  // tile after tile, each row-major
  std::vector<bool> written;     // by tile: whether anybody gave it a value
};
// All zero, nothing written.
Stored make_stored(const Tensor& tensor, TileShape tile);

class Memory {
 public:
  explicit Memory(TileShape tile) : tile_(tile) {}

  [[nodiscard]] TileShape tile() const { return tile_; }

  // Makes room for a tensor and fills it from its init; one that is there keeps its contents. Refused when one of the
  // same name has another extent or precision.
  Result<Stored*> declare(const Tensor& tensor);
  // Declares the tensor and writes it whole, row-major over its extent. Reals are rounded once to its precision. An
  // integer that its precision does not hold is refused, and so are reals for an integer tensor.
  Result<void> set(const Tensor& tensor, std::span<const double> values);
  Result<void> set(const Tensor& tensor, std::span<const int64_t> values);
  // The values, row-major over the extent. Refused when there is no such tensor or part of it was never written.
  [[nodiscard]] Result<std::vector<double>> reals(std::string_view name) const;
  [[nodiscard]] Result<std::vector<int64_t>> integers(std::string_view name) const;  // of an integer tensor

  [[nodiscard]] const Stored* find(std::string_view name) const;
  [[nodiscard]] Stored* find(std::string_view name);
  // Puts a new version of a tensor in the place of the old one.
  void replace(Stored stored);
  // The code of element (row, col), for tests that look at bits and at padding: any place of the grid.
  [[nodiscard]] std::span<const std::byte> code(const Stored& stored, uint64_t row, uint64_t col) const;

 private:
  template <class Value>
  Result<void> set_values(const Tensor& tensor, std::span<const Value> values);
  template <class Value, class Read>
  Result<std::vector<Value>> values(std::string_view name, Read&& read) const;

  TileShape tile_;
  std::map<std::string, Stored, std::less<>> all_;
};

}  // namespace tw::spatial::evaluate
