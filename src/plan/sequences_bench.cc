// What the pass costs: the time of merging the schedules of batches with more and more layers and sequences, and the
// exponent of that time (of the processor) over the number of launches (a straight line in logarithms). The exponent is
// to stay below 1.15.

#include "plan/sequences.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <ctime>

#include "plan/testing/batch_launches.h"

namespace tw::plan {
namespace {

using One = lane::Launch (*)(Batch&, uint32_t);

// A launch of sequence b as it would be in a layer of `s`: what it has for itself under names of the layer and kind.
lane::Launch in_layer(Batch& s, Batch& pattern, One one, const std::string& prefix, uint32_t b) {
  lane::Launch launch = one(pattern, b);
  rename_buffers(launch, [&](lane::BufferId id) {
    const lane::Buffer& buffer = pattern.schedule.at(id);
    if (id == pattern.position(b)) return s.position(b);
    if (!buffer.sequence) return s.shared(buffer.name, buffer.cols, buffer.rows, buffer.fill);
    return s.own(fmt::format("{}.{}", prefix, base_name(buffer)), b, buffer.cols, buffer.rows, buffer.fill);
  });
  return launch;
}

// A step whose layers each have the recurrent and the attending launches of every sequence, fused as far as they go.
Batch step(uint32_t layers, uint32_t sequences) {
  constexpr One kOnes[] = {batch::conv_parts_of, batch::gates_of, batch::delta_of, batch::rope_parts_of,
                           batch::attention_of};
  std::vector<Batch> patterns(std::size(kOnes), Batch(sequences));
  Batch s(sequences);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    for (uint32_t b = 0; b < sequences; ++b) {
      for (size_t kind = 0; kind < std::size(kOnes); ++kind)
        s.add(in_layer(s, patterns[kind], kOnes[kind], fmt::format("{}.{}", layer, kind), b));
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
    const std::clock_t begin = std::clock();
    const SequenceCounts counts = merge_sequences(s.schedule);
    TW_CHECK(counts.merged == 5 * layers, "{} launches merged", counts.merged);
    const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best.seconds = i == 0 ? taken : std::min(best.seconds, taken);
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
  for ([[maybe_unused]] auto _ : state) {
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
  for ([[maybe_unused]] auto _ : state) {
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
