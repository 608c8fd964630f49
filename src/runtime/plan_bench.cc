// What planning costs: models at real shapes, by form. No weights are read; the checkpoints are files of holes.

#include <benchmark/benchmark.h>

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>

#include "model/synth.h"
#include "runtime/knobs.h"

namespace tw::runtime {
namespace {

// A loaded model of a named shape, made once.
const model::Model& model_of(const std::string& architecture, const std::string& shape) {
  static std::map<std::string, std::unique_ptr<model::Model>> models;
  auto& held = models[architecture + shape];
  if (held == nullptr) {
    const auto path = std::filesystem::temp_directory_path() / fmt::format("tilewright-plan-{}.gguf", getpid());
    const auto written = model::synthesize({.architecture = architecture, .shape = shape, .holes = true}, path);
    TW_CHECK(written.ok(), "{}", to_text(written.refusal()));
    auto checkpoint = gguf::Checkpoint::open(path);
    TW_CHECK(checkpoint.ok(), "{}", to_text(checkpoint.refusal()));
    auto loaded = model::Model::load(*checkpoint);
    TW_CHECK(loaded.ok(), "{}", to_text(loaded.refusal()));
    held = std::make_unique<model::Model>(std::move(*loaded));
    std::filesystem::remove(path);
  }
  return *held;
}

void plan(benchmark::State& state, const std::string& architecture, const std::string& shape, graph::Form form) {
  const model::Model& model = model_of(architecture, shape);
  const auto graph = model.step(form);
  TW_CHECK(graph.ok(), "{}", to_text(graph.refusal()));
  const plan::Knobs knobs = knobs_of({});
  size_t launches = 0;
  for ([[maybe_unused]] auto _ : state) {
    const auto schedule = plan::plan_step(*graph, model.constants(), knobs);
    TW_CHECK(schedule.ok(), "{}", to_text(schedule.refusal()));
    launches = schedule->launches.size();
  }
  state.counters["ops"] = static_cast<double>(graph->ops.size());
  state.counters["launches"] = static_cast<double>(launches);
  state.SetComplexityN(static_cast<benchmark::IterationCount>(graph->ops.size()));
}

constexpr graph::Form kDecode{};
constexpr graph::Form batch(uint32_t sequences) { return {graph::Form::Kind::Batch, sequences}; }

void layers_and_sequences(benchmark::State& state) {
  plan(state, "qwen3moe", fmt::format("layers={}", state.range(0)),
       state.range(1) == 1 ? kDecode : batch(static_cast<uint32_t>(state.range(1))));
}

BENCHMARK_CAPTURE(plan, qwen3moe_235b_decode, "qwen3moe", "qwen3moe-235b-a22b", kDecode)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, qwen3moe_235b_chunk_512, "qwen3moe", "qwen3moe-235b-a22b",
                  graph::Form{graph::Form::Kind::Chunk, 512})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, qwen3moe_235b_batch_32, "qwen3moe", "qwen3moe-235b-a22b", batch(32))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, qwen3next_80b_decode, "qwen3next", "qwen3next-80b-a3b", kDecode)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, qwen3next_80b_batch_32, "qwen3next", "qwen3next-80b-a3b", batch(32))
    ->Unit(benchmark::kMillisecond);
// The exponent of the fit is the slope of time over ops, layers times sequences.
BENCHMARK(layers_and_sequences)
    ->ArgsProduct({{8, 32, 128, 512}, {1}})
    ->Unit(benchmark::kMillisecond)
    ->Complexity([](benchmark::IterationCount n) { return static_cast<double>(n); });
BENCHMARK(layers_and_sequences)->ArgsProduct({{16, 64}, {2, 8, 32, 64}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tw::runtime
