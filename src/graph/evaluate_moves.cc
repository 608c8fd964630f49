#include <algorithm>

#include "graph/call.h"

namespace tw::graph {

Result<void> evaluate_op(const Transpose&, Call& call) {
  const Matrix x = call["x"];
  const MutableMatrix out = call.out();
  for (uint64_t r = 0; r < x.rows; ++r)
    for (uint64_t c = 0; c < x.cols; ++c) out(c, r) = x(r, c);
  return {};
}

Result<void> evaluate_op(const HeadSlice& op, Call& call) {
  const Matrix x = call["x"];
  const MutableMatrix out = call.out();
  for (uint64_t r = 0; r < x.rows; ++r)
    for (uint64_t u = 0; u < x.cols / op.every; ++u)
      std::ranges::copy(x.unit(r, u, op.every).subspan(op.from, op.width), out.unit(r, u, op.width).begin());
  return {};
}

Result<void> evaluate_op(const Join& op, Call& call) {
  const Matrix a = call["a"], b = call["b"];
  const MutableMatrix out = call.out();
  const uint64_t ha = a.cols / op.heads, hb = b.cols / op.heads;
  for (uint64_t r = 0; r < a.rows; ++r) {
    for (uint64_t h = 0; h < op.heads; ++h) {
      const auto unit = out.unit(r, h, ha + hb);
      std::ranges::copy(a.unit(r, h, ha), unit.begin());
      std::ranges::copy(b.unit(r, h, hb), unit.subspan(ha).begin());
    }
  }
  return {};
}

Result<void> evaluate_op(const RowGather& op, Call& call) {
  const Matrix table = call["table"];
  TW_TRY(const uint64_t row, call.item_or("index", op.row, table.rows));
  std::ranges::copy(table.row(row - 1), call.out().row(0).begin());
  return {};
}

Result<void> evaluate_op(const RowsGather&, Call& call) {
  const Matrix table = call["table"];
  const MutableMatrix out = call.out();
  for (uint64_t r = 0; r < out.rows; ++r) {
    TW_TRY(const uint64_t row, call.item("index", r, table.rows));
    std::ranges::copy(table.row(row - 1), out.row(r).begin());
  }
  return {};
}

Result<void> evaluate_op(const SetRows& op, Call& call) {
  const MutableMatrix table = call.update("table");
  const Matrix src = call["src"];
  TW_TRY(const uint64_t first, call.item_or("index", op.row, table.rows + 1 - src.rows));
  for (uint64_t r = 0; r < src.rows; ++r) std::ranges::copy(src.row(r), table.row(first - 1 + r).begin());
  return {};
}

Result<void> evaluate_op(const ArgMax&, Call& call) {
  const Matrix x = call["x"];
  for (uint64_t r = 0; r < x.rows; ++r) {
    uint64_t best = 0;
    for (uint64_t c = 1; c < x.cols; ++c)
      if (x(r, c) > x(r, best)) best = c;
    call.out()(r, 0) = static_cast<double>(best + 1);
  }
  return {};
}

}  // namespace tw::graph
