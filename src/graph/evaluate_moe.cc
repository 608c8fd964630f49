#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "graph/call.h"
#include "graph/functions.h"

namespace tw::graph {
namespace {

constexpr double kLeast = -std::numeric_limits<double>::infinity();

// Item (r, c) of an optional operand, 0 where it is absent.
double item_or_zero(const Call& call, std::string_view operand, uint64_t r, uint64_t c) {
  return call.has(operand) ? call[operand](r, c) : 0;
}

std::vector<double> scores_of(const Moe& op, const Call& call, std::span<const double> x) {
  const Matrix router = call["router"];
  std::vector<double> scores(op.experts);
  for (uint64_t e = 0; e < op.experts; ++e) {
    for (uint64_t t = 0; t < x.size(); ++t) scores[e] += x[t] * router(t, e);
    scores[e] += item_or_zero(call, "router_bias", 0, e);
  }
  if (op.score == ScoreKind::Softmax)
    softmax(scores, std::nullopt);
  else
    std::ranges::transform(scores, scores.begin(), sigmoid);
  return scores;
}

// The indices of the `count` largest values, the lower index first when equal.
std::vector<uint64_t> largest(const std::vector<double>& values, uint64_t count) {
  std::vector<uint64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](uint64_t a, uint64_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

// Takes the experts of all but the best groups out of the choice.
void limit_to_groups(const Moe& op, std::vector<double>& choice) {
  const uint64_t width = op.experts / op.groups;
  std::vector<double> worth(op.groups);
  for (uint64_t g = 0; g < op.groups; ++g) {
    std::vector<double> group(choice.begin() + static_cast<int64_t>(g * width),
                              choice.begin() + static_cast<int64_t>((g + 1) * width));
    for (const uint64_t best : largest(group, std::min<uint64_t>(width, 2))) worth[g] += group[best];
  }
  std::vector<bool> kept(op.groups);
  for (const uint64_t g : largest(worth, op.groups_kept)) kept[g] = true;
  for (uint64_t e = 0; e < op.experts; ++e)
    if (!kept[e / width]) choice[e] = kLeast;
}

std::vector<uint64_t> chosen_experts(const Moe& op, const Call& call, const std::vector<double>& scores) {
  std::vector<double> choice(scores);
  for (uint64_t e = 0; e < op.experts; ++e) {
    choice[e] += item_or_zero(call, "select_bias", 0, e);
    if (std::isnan(choice[e])) choice[e] = kLeast;
  }
  if (op.groups > 1) limit_to_groups(op, choice);
  return largest(choice, op.used);
}

double hidden_value(const MoeAct& act, double gate, double up) {
  switch (act.kind) {
    case MoeAct::Kind::SwiGlu: return silu(gate) * up;
    case MoeAct::Kind::GeGlu: return gelu_tanh(gate) * up;
    case MoeAct::Kind::ClampedSwiGlu: {
      const double limit = act.limit;
      const double g = std::min(gate, limit), u = std::clamp(up, -limit, limit);
      return g * sigmoid(act.slope * g) * (u + 1);
    }
  }
  TW_CHECK(false, "activation kind {}", static_cast<int>(act.kind));
}

// One expert's output for x.
std::vector<double> expert(const Moe& op, const Call& call, uint64_t e, const std::vector<double>& x) {
  const Matrix gate = call["gate"], up = call["up"], down = call["down"];
  std::vector<double> hidden(op.hidden), y(x.size());
  for (uint64_t o = 0; o < op.hidden; ++o) {
    const uint64_t row = e * op.hidden + o;
    hidden[o] = hidden_value(op.act, dot(gate.row(row), x) + item_or_zero(call, "gate_bias", e, o),
                             dot(up.row(row), x) + item_or_zero(call, "up_bias", e, o));
  }
  for (uint64_t o = 0; o < y.size(); ++o)
    y[o] = dot(down.row(e * y.size() + o), hidden) + item_or_zero(call, "down_bias", e, o);
  if (call.has("expert_scale"))
    for (double& value : y) value *= call["expert_scale"](0, e);
  return y;
}

void mix_row(const Moe& op, const Call& call, std::span<const double> x, std::span<double> out) {
  const std::vector<double> scores = scores_of(op, call, x);
  double weights = 0;
  for (const uint64_t e : chosen_experts(op, call, scores)) {
    const double weight = op.renormalize ? scores[e] : scores[e] * op.scale;
    std::vector<double> input(x.begin(), x.end());
    if (op.weigh_inputs)
      for (double& value : input) value *= weight;
    const std::vector<double> y = expert(op, call, e, input);
    for (uint64_t i = 0; i < y.size(); ++i) out[i] += op.weigh_inputs ? y[i] : weight * y[i];
    weights += weight;
  }
  if (op.renormalize)
    for (double& value : out) value = value / std::max(weights, 0x1p-14) * op.scale;
}

}  // namespace

Result<void> evaluate_op(const Moe& op, Call& call) {
  const Matrix x = call["x"];
  for (uint64_t r = 0; r < x.rows; ++r) mix_row(op, call, x.row(r), call.out().row(r));
  return {};
}

}  // namespace tw::graph
