#include "lane/cpu/reference/moe.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/math_contract.h"
#include "lane/cpu/reference/product.h"
#include "lane/cpu/reference/reference.h"

namespace tw::lane::cpu::reference {
namespace {

using Row = std::vector<float>;

// A row in the forms a product may read.
class Activation {
 public:
  Activation(Row plain, int words) : plain_(std::move(plain)) {
    if (words == 0 || plain_.size() % kQuantBlock != 0) return;
    storage_.reset(new (std::align_val_t{64}) std::byte[quant_bytes(plain_.size(), words)]);
    QuantArgs args;
    args.x = plain_.data();
    args.to = quant_ = quant_view(storage_.get(), plain_.size(), words);
    args.rows = 1;
    args.cols = args.pitch = plain_.size();
    args.words = words;
    quant(args, {0, plain_.size() / kQuantBlock}, nullptr);
  }
  // Outputs [first, first + n) of `rows`, plus bias[first ...] when there is one.
  [[nodiscard]] Row product(const graph::Rows& rows, uint64_t first, uint64_t n, const float* bias, int words) const {
    ProductArgs args;
    args.rows = 1;
    args.words = words;
    args.x = plain_.data();
    args.x_pitch = plain_.size();
    args.quant = quant_;
    Row y;
    for (uint64_t o = first; o < first + n; ++o) {
      const float sum = reference::product(rows, o, args, 0);
      y.push_back(bias ? sum + bias[o] : sum);
    }
    return y;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  Row plain_;
  std::unique_ptr<std::byte[], Free> storage_;
  QuantView quant_;
};

Row scores_of(const MoeArgs& args, const Row& logits) {
  Row scores = logits;
  if (args.spec.score == graph::ScoreKind::Sigmoid) {
    for (float& score : scores) score = math::sigmoid(score);
    return scores;
  }
  float m = logits[0];
  for (const float logit : logits) m = math::max(logit, m);
  for (float& score : scores) score = math::exp(score - m);
  const float z = lane_tree(scores);
  for (float& score : scores) score = score / z;
  return scores;
}

// Indices of the `count` largest of `values`, the lower first when equal, in that order.
std::vector<uint32_t> best_of(const Row& values, uint32_t count) {
  std::vector<uint32_t> order(values.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

std::vector<uint32_t> picks_of(const MoeArgs& args, const Row& scores) {
  const graph::Moe& spec = args.spec;
  Row choice = scores;
  if (args.select_bias)
    for (uint32_t e = 0; e < spec.experts; ++e) choice[e] = choice[e] + args.select_bias[e];
  if (spec.groups > 1) {
    const uint32_t size = spec.experts / spec.groups;
    Row worth;
    for (uint32_t g = 0; g < spec.groups; ++g) {
      Row group(choice.begin() + g * size, choice.begin() + (g + 1) * size);
      std::sort(group.rbegin(), group.rend());
      worth.push_back(size == 1 ? group[0] : group[0] + group[1]);
    }
    const std::vector<uint32_t> kept = best_of(worth, spec.groups_kept);
    for (uint32_t e = 0; e < spec.experts; ++e)
      if (std::find(kept.begin(), kept.end(), e / size) == kept.end()) choice[e] = -INFINITY;
  }
  return best_of(choice, spec.used);
}

float act(const graph::MoeAct& kind, float g, float u) {
  switch (kind.kind) {
    case graph::MoeAct::Kind::SwiGlu: return math::silu(g) * u;
    case graph::MoeAct::Kind::GeGlu: return math::gelu(g) * u;
    case graph::MoeAct::Kind::ClampedSwiGlu: break;
  }
  const float gate = std::min(g, kind.limit);
  const float up = std::clamp(u, -kind.limit, kind.limit);
  return gate * math::sigmoid(kind.slope * gate) * (up + 1.0F);
}

}  // namespace

std::vector<float> moe(const MoeArgs& args, const MoeRows& weights, uint64_t r) {
  const graph::Moe& spec = args.spec;
  const Row x(args.x + r * args.x_pitch, args.x + r * args.x_pitch + args.d);
  const Activation input(x, args.words);
  const Row scores = scores_of(args, input.product(*weights.router, 0, spec.experts, args.router_bias, args.words));
  const std::vector<uint32_t> picks = picks_of(args, scores);
  float sum = 0;
  for (const uint32_t e : picks) sum = sum + scores[e];
  Row y(args.d);
  for (size_t i = 0; i < picks.size(); ++i) {
    const uint32_t e = picks[i];
    Row weighed = x;
    for (float& value : weighed) value = spec.weigh_inputs ? (scores[e] * spec.scale) * value : value;
    const Activation own(weighed, args.words);
    Row hidden = own.product(*weights.gate, uint64_t{e} * spec.hidden, spec.hidden, args.gate_bias, args.words);
    const Row up = own.product(*weights.up, uint64_t{e} * spec.hidden, spec.hidden, args.up_bias, args.words);
    for (uint32_t o = 0; o < spec.hidden; ++o) hidden[o] = act(spec.act, hidden[o], up[o]);
    const Row out =
        Activation(hidden, args.words).product(*weights.down, e * args.d, args.d, args.down_bias, args.words);
    float factor = spec.weigh_inputs ? 1.0F : scores[e];
    if (spec.renormalize) factor = factor / math::max(sum, 0x1p-14F);
    if (!spec.weigh_inputs) factor = factor * spec.scale;
    if (args.expert_scale) factor = factor * args.expert_scale[e];
    for (uint64_t o = 0; o < args.d; ++o) y[o] = i == 0 ? factor * out[o] : std::fma(factor, out[o], y[o]);
  }
  if (weights.shared_gate == nullptr) return y;
  const uint64_t shared_hidden = weights.shared_gate->count;
  Row hidden = input.product(*weights.shared_gate, 0, shared_hidden, nullptr, args.words);
  const Row up = input.product(*weights.shared_up, 0, shared_hidden, nullptr, args.words);
  for (uint64_t o = 0; o < shared_hidden; ++o) hidden[o] = math::silu(hidden[o]) * up[o];
  const Row out = Activation(hidden, args.words).product(*weights.shared_down, 0, args.d, nullptr, args.words);
  for (uint64_t o = 0; o < args.d; ++o) y[o] = y[o] + out[o];
  return y;
}

}  // namespace tw::lane::cpu::reference
