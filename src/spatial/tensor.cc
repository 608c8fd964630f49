#include "spatial/tensor.h"

#include <algorithm>
#include <functional>

namespace tw::spatial {
namespace {

// No table is one without values.
template <class T, class Equal>
bool equal_tables(const std::shared_ptr<const std::vector<T>>& a, const std::shared_ptr<const std::vector<T>>& b,
                  Equal equal) {
  if (!a || !b) return (!a || a->empty()) && (!b || b->empty());
  return std::equal(a->begin(), a->end(), b->begin(), b->end(), equal);
}

}  // namespace

bool IntegerValues::operator==(const IntegerValues& o) const {
  return equal_tables(values, o.values, std::equal_to<>{});
}

bool RealValues::operator==(const RealValues& o) const {
  return equal_tables(values, o.values, [](double a, double b) { return RealInit{a} == RealInit{b}; });
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
