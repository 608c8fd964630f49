#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/call.h"
#include "graph/functions.h"

namespace tw::graph {
namespace {

// Calls body(row, first column of the unit, width) for every unit of `width` values (0: the whole row).
template <class Body>
void for_each_unit(const Matrix& x, uint64_t width, Body body) {
  if (width == 0) width = x.cols;
  for (uint64_t r = 0; r < x.rows; ++r)
    for (uint64_t c = 0; c < x.cols; c += width) body(r, c, width);
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

Result<void> evaluate_op(const RowNorm& op, Call& call) {
  const Matrix x = call["x"];
  const MutableMatrix out = call.out();
  for_each_unit(x, op.width, [&](uint64_t r, uint64_t first, uint64_t width) {
    std::vector<double> v(width);
    for (uint64_t i = 0; i < width; ++i)
      v[i] = x(r, first + i) + (call.has("residual") ? call["residual"](r, first + i) : 0);
    const double centre = op.kind == NormKind::Layer ? mean(v) : 0;
    for (double& value : v) value -= centre;
    const double scale = 1 / std::sqrt(mean_square(v) + op.eps);
    for (uint64_t i = 0; i < width; ++i) {
      const double weight = call.has("weight") ? call["weight"](0, i) : 1;
      const double bias = call.has("bias") ? call["bias"](0, i) : 0;
      out(r, first + i) = v[i] * scale * weight + bias;
    }
  });
  return {};
}

Result<void> evaluate_op(const Softmax&, Call& call) {
  const Matrix x = call["x"];
  for (uint64_t r = 0; r < x.rows; ++r) {
    const auto out = call.out().row(r);
    std::ranges::copy(x.row(r), out.begin());
    std::optional<double> sink;
    if (call.has("sinks")) sink = call["sinks"](call["sinks"].rows == 1 ? 0 : r, 0);
    softmax(out, sink);
  }
  return {};
}

Result<void> evaluate_op(const L2Norm& op, Call& call) {
  const Matrix x = call["x"];
  const MutableMatrix out = call.out();
  for_each_unit(x, op.width, [&](uint64_t r, uint64_t first, uint64_t width) {
    const auto unit = x.row(r).subspan(first, width);
    const double length = std::sqrt(dot(unit, unit) + op.eps);
    for (uint64_t i = 0; i < width; ++i) out(r, first + i) = unit[i] / length;
  });
  return {};
}

Result<void> evaluate_op(const Rope& op, Call& call) {
  const Matrix x = call["x"], cos = call["cos"], sin = call["sin"];
  const MutableMatrix out = call.out();
  TW_TRY(const uint64_t position, call.item_or("position", 1, cos.rows + 1 - x.rows));
  std::ranges::copy(x.all(), out.all().begin());
  for_each_unit(x, op.width, [&](uint64_t r, uint64_t first, uint64_t) {
    for (uint64_t i = first; i < first + op.half; ++i) {
      const double c = cos(position - 1 + r, i - first), s = sin(position - 1 + r, i - first);
      out(r, i) = x(r, i) * c - x(r, i + op.half) * s;
      out(r, i + op.half) = x(r, i) * s + x(r, i + op.half) * c;
    }
  });
  return {};
}

}  // namespace tw::graph
