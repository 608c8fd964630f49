// The price of the numerics contract: each main kernel beside a twin that may sum in any order (free_order.h), in
// turns, one thread. `ratio` is the kernel's time over the twin's, medians of one run. What a decode step streams is
// measured twice: where the second-level cache holds it, which shows instructions, and from memory, as in a step.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "lane/cpu/free_order.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

double median(std::vector<double>& of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

// The largest difference, in units of the largest value.
double distance(const float* a, const float* b, size_t count) {
  double most = 0, apart = 0;
  for (size_t i = 0; i < count; ++i) {
    most = std::max(most, std::abs(double{a[i]}));
    apart = std::max(apart, std::abs(double{a[i]} - double{b[i]}));
  }
  return apart / most;
}

constexpr double kRounding = 1e-4;

template <class Work>
double seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The two do the same sums: `strict` into `a`, `free` into `b`.
template <class Strict, class Free>
void price(benchmark::State& state, const float* a, const float* b, size_t count, Strict strict, Free free) {
  if (!supported(Isa::Avx2) || best_isa() != Isa::Avx2) return state.SkipWithError("the twins are for AVX2");
  strict();
  free();
  if (const double apart = distance(a, b, count); !(apart < kRounding)) return state.SkipWithError("the twin is wrong");
  std::vector<double> strict_times, free_times;
  for ([[maybe_unused]] auto _ : state) {
    strict_times.push_back(seconds(strict));
    free_times.push_back(seconds(free));
  }
  const double s = median(strict_times), f = median(free_times);
  state.counters["strict_us"] = s * 1e6;
  state.counters["free_us"] = f * 1e6;
  state.counters["ratio"] = s / f;
}

using ProductTwin = void (*)(const cases::Product&, float*);

void product(benchmark::State& state, Format format, uint64_t n, uint64_t rows, ProductTwin twin) {
  cases::Product p(format, n, 1024, rows);
  cases::Array<float> y(p.y.size());
  price(
      state, p.y.get(), y.get(), y.size(), [&] { p.run(); }, [&] { twin(p, y.get()); });
}
// Outputs: of a matrix that the second-level cache holds, and of one far beyond the caches.
constexpr uint64_t kNear = 256, kFar = 65536, kFarNibbles = 2 * kFar;
BENCHMARK_CAPTURE(product, q8_0_one_row, Format::Q8_0, kNear, 1, free_order::product_row<Layout::Q8_0>);
BENCHMARK_CAPTURE(product, q8_0_one_row_memory, Format::Q8_0, kFar, 1, free_order::product_row<Layout::Q8_0>);
BENCHMARK_CAPTURE(product, q4_0_one_row, Format::Q4_0, kNear, 1, free_order::product_row<Layout::Q4_0>);
BENCHMARK_CAPTURE(product, q4_0_one_row_memory, Format::Q4_0, kFarNibbles, 1, free_order::product_row<Layout::Q4_0>);
BENCHMARK_CAPTURE(product, q8_0_rows, Format::Q8_0, kNear, 64, free_order::product_q8);
BENCHMARK_CAPTURE(product, q4_0_rows, Format::Q4_0, kNear, 64, free_order::product_q4);
BENCHMARK_CAPTURE(product, f32_one_row, Format::F32, 64, 1, free_order::product_f32);

using NormTwin = void (*)(const cases::RowNorm&, float*);

void norm(benchmark::State& state, NormTwin twin) {
  cases::RowNorm p(1, 1024);
  cases::Array<float> y(p.y.size());
  // Many times between two looks at the clock, which takes as long as one.
  const auto often = [](const auto& run) {
    for (int i = 0; i < 64; ++i) run();
  };
  price(
      state, p.y.get(), y.get(), y.size(), [&] { often([&] { p.run(); }); }, [&] { often([&] { twin(p, y.get()); }); });
}
// As many sums as hide what an addition takes; as many as the lane tree has.
BENCHMARK_CAPTURE(norm, all, free_order::norm<4>);
BENCHMARK_CAPTURE(norm, sums_of_the_tree, free_order::norm<2>);

using AttentionTwin = void (*)(const cases::Attention&, float*);

void attention(benchmark::State& state, uint64_t positions, AttentionTwin twin) {
  cases::Attention p(1, 4, 2, 128, positions);
  cases::Array<float> y(p.y.size());
  price(
      state, p.y.get(), y.get(), y.size(), [&] { p.run(); }, [&] { twin(p, y.get()); });
  std::vector<double> merges;
  for (int i = 0; i < 101; ++i) merges.push_back(seconds([&] { p.merge(); }));
  state.counters["merge_us"] = median(merges) * 1e6;  // of strict_us: what the states of the chunks cost
}
// Scores of one sum; of sums of as many products as the contract's segments have.
BENCHMARK_CAPTURE(attention, near, 512, free_order::attention<2, 1024>);
BENCHMARK_CAPTURE(attention, near_segments, 512, free_order::attention<2, 64>);
BENCHMARK_CAPTURE(attention, memory, 65536, free_order::attention<2, 1024>);
BENCHMARK_CAPTURE(attention, memory_segments, 65536, free_order::attention<2, 64>);

void delta(benchmark::State& state, uint64_t heads) {
  cases::DeltaRule strict(1, heads, 128), free(1, heads, 128);
  price(
      state, strict.o.get(), free.o.get(), free.o.size(), [&] { strict.run(); }, [&] { free_order::delta(free.args); });
}
BENCHMARK_CAPTURE(delta, near, 4);
BENCHMARK_CAPTURE(delta, memory, 768);

}  // namespace
}  // namespace tw::lane::cpu
