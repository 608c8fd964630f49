#include <fmt/format.h>

#include "graph/call.h"
#include "graph/functions.h"

namespace tw::graph {
namespace {

Result<void> matmul_integers(Call& call) {
  const Matrix x = call["x"], w = call["w"];
  const MutableMatrix out = call.out();
  for (uint64_t r = 0; r < x.rows; ++r) {
    for (uint64_t o = 0; o < w.cols; ++o) {
      Integer sum = 0;
      for (uint64_t t = 0; t < x.cols; ++t) sum += static_cast<Integer>(x(r, t)) * static_cast<Integer>(w(t, o));
      const std::optional<int32_t> fits = as_i32(sum);
      if (!fits)
        return call.refuse_result(RefusalKind::TooLarge,
                                  fmt::format("the sum of row {}, column {} does not fit an i32", r + 1, o + 1));
      out(r, o) = *fits;
    }
  }
  return {};
}

}  // namespace

Result<void> evaluate_op(const Matmul&, Call& call) {
  if (call.integers()) return matmul_integers(call);
  const Matrix x = call["x"], w = call["w"];
  const MutableMatrix out = call.out();
  for (uint64_t r = 0; r < x.rows; ++r)
    for (uint64_t t = 0; t < x.cols; ++t)
      for (uint64_t o = 0; o < w.cols; ++o) out(r, o) += x(r, t) * w(t, o);
  return {};
}

Result<void> evaluate_op(const HeadMatmul& op, Call& call) {
  const Matrix x = call["x"], w = call["w"];
  const MutableMatrix y = call.out();
  const uint64_t heads = op.heads;
  const uint64_t inputs = op.shared ? x.cols : x.cols / heads;
  const uint64_t outputs = y.cols / heads;
  for (uint64_t r = 0; r < x.rows; ++r) {
    for (uint64_t h = 0; h < heads; ++h) {
      const auto in = x.unit(r, op.shared ? 0 : h, inputs);
      const auto out = y.unit(r, h, outputs);
      for (uint64_t o = 0; o < outputs; ++o)
        for (uint64_t e = 0; e < inputs; ++e)
          out[o] += in[e] * (op.rows_out ? w(h * outputs + o, e) : w(h * inputs + e, o));
    }
  }
  return {};
}

}  // namespace tw::graph
