#include "spatial/tensor.h"

#include <algorithm>

namespace tw::spatial {
namespace {

uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

}  // namespace

bool IntegerValues::operator==(const IntegerValues& o) const {
  if (!values || !o.values) return values == o.values;
  return *values == *o.values;
}

bool RealValues::operator==(const RealValues& o) const {
  if (!values || !o.values) return values == o.values;
  return std::equal(values->begin(), values->end(), o.values->begin(), o.values->end(),
                    [](double a, double b) { return bits_of(a) == bits_of(b); });
}

IntegerValues integer_values(std::vector<int64_t> values) {
  return {std::make_shared<const std::vector<int64_t>>(std::move(values))};
}
RealValues real_values(std::vector<double> values) {
  return {std::make_shared<const std::vector<double>>(std::move(values))};
}

TileGrid grid_of(const Tensor& tensor, TileShape tile) {
  const auto count = [](uint64_t extent, uint64_t step) { return extent / step + (extent % step != 0 ? 1 : 0); };
  return {count(tensor.rows, tile.rows), count(tensor.cols, tile.cols)};
}

TilePlace place_of(const Tensor& tensor, TileShape tile, uint64_t row, uint64_t col) {
  return {row / tile.rows * grid_of(tensor, tile).cols + col / tile.cols,
          row % tile.rows * tile.cols + col % tile.cols};
}

}  // namespace tw::spatial
