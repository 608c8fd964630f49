// Certificate time over 1, 2, 4, 8 copies of the same chain, and over as many more items: both should double.

#include <benchmark/benchmark.h>

#include "spatial/certify/certify.h"
#include "spatial/certify/testing.h"

namespace tw::spatial {
namespace {

Target roomy() {
  Target target = testing::shipped_target("toy_square");
  target.local_bytes = uint64_t{1} << 40;
  return target;
}

void certify_copies(benchmark::State& state) {
  const Target target = roomy();
  const Result<Program> program = testing::many_adds(target, 2500 * static_cast<uint64_t>(state.range(0)), 16);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(certify(*program, target).ok());
  state.counters["stages"] = static_cast<double>(program->stages.size());
}
BENCHMARK(certify_copies)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

void certify_items(benchmark::State& state) {
  const Target target = roomy();
  const Result<Program> program = testing::many_adds(target, 50, 512 * static_cast<uint64_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(certify(*program, target).ok());
  state.counters["items"] = static_cast<double>(program->work.items.size());
}
BENCHMARK(certify_items)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tw::spatial
