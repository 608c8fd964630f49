#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "graph/call.h"
#include "graph/functions.h"

namespace tw::graph {
namespace {

double combine(Arithmetic op, double a, double b) {
  switch (op) {
    case Arithmetic::Add: return a + b;
    case Arithmetic::Sub: return a - b;
    case Arithmetic::Mul: return a * b;
    case Arithmetic::Div: return a / b;
    case Arithmetic::Min: return std::min(a, b);
    case Arithmetic::Max: return std::max(a, b);
  }
  TW_CHECK(false, "arithmetic {}", static_cast<int>(op));
}

// Requires b != 0 for Div.
Integer combine(Arithmetic op, Integer a, Integer b) {
  switch (op) {
    case Arithmetic::Add: return a + b;
    case Arithmetic::Sub: return a - b;
    case Arithmetic::Mul: return a * b;
    case Arithmetic::Div: return floor_div(a, b);
    case Arithmetic::Min: return std::min(a, b);
    case Arithmetic::Max: return std::max(a, b);
  }
  TW_CHECK(false, "arithmetic {}", static_cast<int>(op));
}

// out[r][c] = a[r][c] (op) b(r, c)
template <class Second>
Result<void> combine_all(Call& call, Arithmetic op, Second b) {
  const Matrix a = call["a"];
  const MutableMatrix out = call.out();
  for (uint64_t r = 0; r < a.rows; ++r) {
    for (uint64_t c = 0; c < a.cols; ++c) {
      if (!call.integers()) {
        out(r, c) = combine(op, a(r, c), b(r, c));
        continue;
      }
      const Integer x = static_cast<Integer>(a(r, c)), y = static_cast<Integer>(b(r, c));
      if (op == Arithmetic::Div && y == 0)
        return call.refuse_result(RefusalKind::Malformed,
                                  fmt::format("row {}, column {} is divided by 0", r + 1, c + 1));
      const std::optional<int32_t> fits = as_i32(combine(op, x, y));
      if (!fits)
        return call.refuse_result(RefusalKind::TooLarge,
                                  fmt::format("row {}, column {} does not fit an i32", r + 1, c + 1));
      out(r, c) = *fits;
    }
  }
  return {};
}

template <class Function>
Result<void> map(Call& call, Function f) {
  std::ranges::transform(call["x"].all(), call.out().all().begin(), f);
  return {};
}

}  // namespace

Result<void> evaluate_op(const Elementwise& op, Call& call) { return combine_all(call, op.op, call["b"]); }

Result<void> evaluate_op(const RowBroadcast& op, Call& call) {
  const Matrix b = call["b"];
  return combine_all(call, op.op, [&](uint64_t r, uint64_t c) { return op.scalar ? b(r, 0) : b(0, c); });
}

Result<void> evaluate_op(const Scale& op, Call& call) {
  return map(call, [&](double x) { return x * op.factor; });
}

Result<void> evaluate_op(const Activate& op, Call& call) {
  return map(call, [&](double x) { return activate(op.kind, x); });
}

Result<void> evaluate_op(const Softcap& op, Call& call) {
  return map(call, [&](double x) { return softcapped(x, op.cap); });
}

Result<void> evaluate_op(const IntRequant& op, Call& call) {
  const Matrix x = call["x"];
  const MutableMatrix out = call.out();
  for (uint64_t i = 0; i < x.all().size(); ++i) {
    const std::optional<int32_t> fits = as_i32((static_cast<Integer>(x.data[i]) * op.multiplier) >> op.shift);
    if (!fits) return call.refuse_result(RefusalKind::TooLarge, fmt::format("item {} does not fit an i32", i + 1));
    out.data[i] = *fits;
  }
  return {};
}

Result<void> evaluate_op(const IntClamp& op, Call& call) {
  return map(call, [&](double x) { return std::clamp<double>(x, op.low, op.high); });
}

}  // namespace tw::graph
