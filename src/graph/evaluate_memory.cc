#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/call.h"
#include "graph/functions.h"

namespace tw::graph {

Result<void> evaluate_op(const CausalConv&, Call& call) {
  const Matrix x = call["x"], w = call["w"];
  const MutableMatrix ring = call.update("ring"), out = call.out();
  // The ring's rows, then those of x.
  std::vector<double> all(ring.all().begin(), ring.all().end());
  all.insert(all.end(), x.all().begin(), x.all().end());
  const Matrix line{all.data(), ring.rows + x.rows, x.cols};
  for (uint64_t r = 0; r < x.rows; ++r)
    for (uint64_t c = 0; c < x.cols; ++c)
      for (uint64_t t = 0; t < w.rows; ++t) out(r, c) += line(r + 1 + t, c) * w(t, c);
  for (uint64_t t = 0; t < ring.rows; ++t) std::ranges::copy(line.row(x.rows + t), ring.row(t).begin());
  return {};
}

Result<void> evaluate_op(const Decay&, Call& call) {
  const Matrix x = call["x"], bias = call["bias"], rate = call["rate"];
  const MutableMatrix out = call.out();
  for (uint64_t r = 0; r < x.rows; ++r)
    for (uint64_t h = 0; h < x.cols; ++h) out(r, h) = std::exp(rate(0, h) * softplus(x(r, h) + bias(0, h)));
  return {};
}

namespace {

uint64_t key_head(const GatedDelta& op, uint64_t head) {
  return op.key_head_of == KeyHeadOf::Modulo ? head % op.key_heads : head / (op.value_heads / op.key_heads);
}

// One head's memory at one row: decays it, writes what the key should recall, and reads it by the query.
std::vector<double> step_memory(MutableMatrix memory, std::span<const double> q, std::span<const double> k,
                                std::span<const double> v, std::span<const double> alpha, double beta) {
  const uint64_t d = memory.cols;
  std::vector<double> recalled(d);
  for (uint64_t i = 0; i < d; ++i) {
    for (uint64_t j = 0; j < d; ++j) memory(i, j) *= alpha.size() == 1 ? alpha[0] : alpha[j];
    const double u = dot(memory.row(i), k);
    for (uint64_t j = 0; j < d; ++j) memory(i, j) += beta * (v[i] - u) * k[j];
    recalled[i] = dot(memory.row(i), q) / std::sqrt(static_cast<double>(d));
  }
  return recalled;
}

}  // namespace

Result<void> evaluate_op(const GatedDelta& op, Call& call) {
  const Matrix q = call["q"], k = call["k"], v = call["v"], z = call["z"], beta = call["beta"], alpha = call["alpha"],
               norm = call["norm"];
  const MutableMatrix state = call.update("state"), out = call.out();
  const uint64_t d = state.cols;
  for (uint64_t r = 0; r < q.rows; ++r) {
    for (uint64_t h = 0; h < op.value_heads; ++h) {
      const uint64_t g = key_head(op, h);
      const MutableMatrix memory{state.data + h * d * d, d, d};
      const std::vector<double> o = step_memory(memory, q.unit(r, g, d), k.unit(r, g, d), v.unit(r, h, d),
                                                alpha.unit(r, h, alpha.cols / op.value_heads), beta(r, h));
      const double scale = 1 / std::sqrt(mean_square(o) + op.eps);
      for (uint64_t i = 0; i < d; ++i) {
        const double gate = z.unit(r, h, d)[i];
        out.unit(r, h, d)[i] = o[i] * scale * norm(0, i) * (op.gate == GateKind::Silu ? silu(gate) : sigmoid(gate));
      }
    }
  }
  return {};
}

}  // namespace tw::graph
