// Decoder layers of a qwen3 of 0.6 billion weights, decode step, context 512, for tensix: lowered and composed, and
// certified. The argument is the number of layers.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>

#include "graph/builder.h"
#include "spatial/certify/certify_step.h"
#include "spatial/step/lower_step.h"
#include "spatial/target_file.h"

namespace {

using namespace tw;
using graph::TensorId;

constexpr uint32_t kWidth = 1024, kHeads = 16, kKvHeads = 8, kHead = 128, kHidden = 3072, kContext = 512;

// The ops of a layer as src/model writes them.
class Layers {
 public:
  graph::StepGraph make(uint32_t layers) {
    position_ = b_.param("position", 1);
    cos_ = b_.constant("rope.cos", kContext, kHead / 2);
    sin_ = b_.constant("rope.sin", kContext, kHead / 2);
    TensorId x = b_.constant("x", 1, kWidth);
    for (layer_ = 0; layer_ < layers; ++layer_) x = feed_forward(attention(x));
    return std::move(b_).finish();
  }

 private:
  std::string name(std::string_view part) const { return fmt::format("blk.{}.{}", layer_, part); }
  TensorId add(std::string_view part, graph::OpSpec spec, std::vector<TensorId> operands) {
    return b_.add(name(part), spec, std::move(operands));
  }
  TensorId product(std::string_view part, TensorId x, uint32_t cols) {
    const TensorId w = b_.constant(name(part) + ".weight", b_.at(x).cols, cols);
    return add(part, graph::Matmul{}, {x, w});
  }
  TensorId norm(std::string_view part, TensorId x, uint32_t width) {
    const TensorId w = b_.constant(name(part) + ".weight", 1, width == 0 ? b_.at(x).cols : width);
    return add(part, graph::RowNorm{.width = width}, {x, w});
  }
  TensorId turned(std::string_view part, TensorId x) {
    return add(part, graph::Rope{kHead, kHead / 2}, {x, cos_, sin_, position_});
  }
  TensorId cached(std::string_view part, TensorId x) {
    const TensorId cache = b_.state(name(part), kContext, b_.at(x).cols);
    b_.set_rows(cache, x, position_);
    return cache;
  }

  TensorId attention(TensorId x) {
    const TensorId normed = norm("attn_norm", x, 0);
    const TensorId q = turned("q_rope", norm("q_norm", product("q", normed, kHeads * kHead), kHead));
    const TensorId k =
        cached("k_cache", turned("k_rope", norm("k_norm", product("k", normed, kKvHeads * kHead), kHead)));
    const TensorId v = cached("v_cache", product("v", normed, kKvHeads * kHead));
    const TensorId attended =
        add("attn", graph::Attention{.heads = kHeads, .kv_heads = kKvHeads, .scale = 0.0883883F}, {q, k, v, position_});
    return add("mixed", graph::Elementwise{}, {x, product("attn_out", attended, kWidth)});
  }
  TensorId feed_forward(TensorId x) {
    const TensorId normed = norm("ffn_norm", x, 0);
    const TensorId gate = add("ffn_gate_silu", graph::Activate{}, {product("ffn_gate", normed, kHidden)});
    const TensorId hidden =
        add("ffn_hidden", graph::Elementwise{graph::Arithmetic::Mul}, {gate, product("ffn_up", normed, kHidden)});
    return add("out", graph::Elementwise{}, {x, product("ffn_down", hidden, kWidth)});
  }

  graph::GraphBuilder b_{"layers", {}};
  uint32_t layer_ = 0;
  TensorId position_{}, cos_{}, sin_{};
};

spatial::Target tensix() { return *spatial::find_target("tensix"); }

spatial::step::LoweredStep lowered(const graph::StepGraph& graph, const spatial::Target& target) {
  Result<spatial::step::LoweredStep> step = spatial::step::lower_step(graph, target);
  if (step) return std::move(*step);
  fmt::print(stderr, "{}\n", to_text(step.refusal()));
  std::exit(1);
}

void lower(benchmark::State& state) {
  const spatial::Target target = tensix();
  const graph::StepGraph graph = Layers().make(static_cast<uint32_t>(state.range(0)));
  size_t sections = 0;
  for ([[maybe_unused]] auto _ : state) sections = lowered(graph, target).composition.sections.size();
  state.counters["sections"] = static_cast<double>(sections);
}

void certify(benchmark::State& state) {
  const spatial::Target target = tensix();
  const auto step = lowered(Layers().make(static_cast<uint32_t>(state.range(0))), target);
  bool ok = true;
  for ([[maybe_unused]] auto _ : state) ok = spatial::certify(step.composition, target).ok() && ok;
  if (!ok) state.SkipWithError("the step has no certificate");
}

BENCHMARK(lower)->RangeMultiplier(2)->Range(1, 8)->Unit(benchmark::kMillisecond);
BENCHMARK(certify)->RangeMultiplier(2)->Range(1, 8)->Unit(benchmark::kMillisecond);

}  // namespace
