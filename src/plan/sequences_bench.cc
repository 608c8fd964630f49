// What the pass costs: the time of merging the schedules of batches with more and more layers and sequences, and the
// exponent of that time over the number of launches (a straight line in logarithms). The exponent is to stay
// below 1.15.

#include "plan/sequences.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>

#include "plan/testing/batch_launches.h"

namespace tw::plan {
namespace {

// A step whose layers each have the recurrent and the attending launches of every sequence, fused as far as they go.
Batch step(uint32_t layers, uint32_t sequences) {
  Batch s(sequences);
  const auto renamed = [&](lane::Launch launch, uint32_t layer, uint32_t b) {
    rename_buffers(launch, [&](lane::BufferId id) {
      const lane::Buffer buffer = s.schedule.at(id);
      if (buffer.sequence != b || buffer.fill == lane::Fill::Param) return id;
      return s.own(fmt::format("{}.{}", layer, base_name(buffer)), b, buffer.cols, buffer.rows, buffer.fill);
    });
    s.add(launch);
  };
  for (uint32_t layer = 0; layer < layers; ++layer) {
    for (uint32_t b = 0; b < sequences; ++b) {
      renamed(batch::conv_parts_of(s, b), 2 * layer, b);
      renamed(batch::gates_of(s, b), 2 * layer, b);
      renamed(batch::delta_of(s, b), 2 * layer, b);
    }
    for (uint32_t b = 0; b < sequences; ++b) {
      renamed(batch::rope_parts_of(s, b), 2 * layer + 1, b);
      renamed(batch::attention_of(s, b), 2 * layer + 1, b);
    }
  }
  return s;
}

struct Measured {
  double launches = 0, seconds = 0;
};
Measured measure(uint32_t layers, uint32_t sequences) {
  Measured best;
  for (int i = 0; i < 5; ++i) {
    Batch s = step(layers, sequences);
    best.launches = static_cast<double>(s.schedule.launches.size());
    const auto begin = std::chrono::steady_clock::now();
    merge_sequences(s.schedule);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best.seconds = i == 0 ? taken.count() : std::min(best.seconds, taken.count());
  }
  return best;
}

// The slope of the least squares line through the logarithms.
double exponent(const std::vector<Measured>& all) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const Measured& m : all) {
    const double lx = std::log(m.launches), ly = std::log(m.seconds);
    x += lx, y += ly, xx += lx * lx, xy += lx * ly;
  }
  const auto n = static_cast<double>(all.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

void merge(benchmark::State& state) {
  const auto layers = static_cast<uint32_t>(state.range(0)), sequences = static_cast<uint32_t>(state.range(1));
  for (auto _ : state) {
    const Measured m = measure(layers, sequences);
    state.SetIterationTime(m.seconds);
    state.counters["launches"] = m.launches;
    state.counters["us_a_launch"] = 1e6 * m.seconds / m.launches;
  }
}
BENCHMARK(merge)
    ->ArgsProduct({{8, 64, 512}, {2, 8, 32}})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void merge_exponent(benchmark::State& state) {
  for (auto _ : state) {
    std::vector<Measured> all;
    for (const uint32_t layers : {8U, 32U, 128U, 512U}) {
      for (const uint32_t sequences : {2U, 8U, 32U}) all.push_back(measure(layers, sequences));
    }
    state.counters["exponent"] = exponent(all);
  }
}
BENCHMARK(merge_exponent)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tw::plan
