// Composing and placing a step of many sections: time a section must not grow with their number.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "spatial/place.h"
#include "spatial/testing.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

// A chain of additions, each of the result before.
std::vector<Program> chain(const Target& target, int64_t count) {
  std::vector<Program> sections;
  for (int64_t i = 0; i < count; ++i) {
    Program p = *testing::flat_add(target, 7);
    p.name = fmt::format("add_{}", i);
    p.tensors[2].name = fmt::format("c_{}", i);
    if (i > 0) {
      p.tensors[0].name = fmt::format("c_{}", i - 1);
      p.tensors[0].init = ExternalInit{};
    }
    sections.push_back(std::move(p));
  }
  return sections;
}

void BM_ComposeAndPlace(benchmark::State& state) {
  const Target target = testing::shipped_target("toy_square");
  const std::vector<Program> sections = chain(target, state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    const Result<Composition> step = compose(sections, {"chain", {}});
    benchmark::DoNotOptimize(place(*step, target));
  }
  state.SetComplexityN(state.range(0));
  state.counters["stages"] = static_cast<double>(4 * state.range(0));
}
BENCHMARK(BM_ComposeAndPlace)
    ->RangeMultiplier(2)
    ->Range(2500, 20000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

void BM_Validate(benchmark::State& state) {
  const Program fold =
      *testing::streamed_product(testing::shipped_target("toy_square"), 8, 8, static_cast<uint64_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(validate(fold));
}
BENCHMARK(BM_Validate)->Arg(2)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tw::spatial
