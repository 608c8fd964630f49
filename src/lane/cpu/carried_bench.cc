// The gated delta rule and the convolution: bytes of memory read and written a second at one row, nanoseconds a head
// (or channel) and row at many. Every iteration takes another layer's memories.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lane/cpu/kernels.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/roofline.h"

namespace tw::lane::cpu {
namespace {

constexpr unsigned kThreads = 2;
constexpr uint64_t kMemories = uint64_t{96} << 20;  // bytes of all layers together

template <class Args>
void on_all(Pool& pool, Kernel<Args> kernel, const Args& a, uint64_t count, DeltaChunk* scratch = nullptr) {
  ItemCounter counter;
  const uint64_t turns = std::min<uint64_t>(count, 16 * kThreads);
  pool.run([&](unsigned thread) {
    auto* own = scratch == nullptr ? nullptr : reinterpret_cast<std::byte*>(scratch + thread);
    for (Range i = counter.next(turns, 1); i.begin < i.end; i = counter.next(turns, 1))
      kernel(a, {count * i.begin / turns, count * i.end / turns}, own);
  });
}

void delta(benchmark::State& state, uint64_t heads, uint64_t rows, Order order) {
  constexpr uint64_t kWidth = 128;
  const uint64_t layer = heads * kWidth * kWidth;
  const uint64_t layers = std::max<uint64_t>(1, kMemories / 4 / layer);
  std::vector<float> memory(layer * layers, 0.01f), q(rows * heads * kWidth, 0.05f), v(q), o(q),
      scalars(rows * heads, 0.5f);
  DeltaArgs a{.q = q.data(),
              .k = q.data(),
              .v = v.data(),
              .beta = scalars.data(),
              .alpha = scalars.data(),
              .o = o.data(),
              .rows = rows,
              .value_heads = heads,
              .key_heads = heads,
              .d = kWidth};
  Pool pool(kThreads);
  std::vector<DeltaChunk> scratch(kThreads);
  uint64_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    a.state = memory.data() + i++ % layers * layer;
    if (order == Order::FastDelta)
      on_all(pool, kernels(best_isa()).delta_chunks, a, delta_chunks_items(a), scratch.data());
    else
      on_all(pool, kernels(best_isa()).delta_update, a, delta_update_items(a));
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] =
      benchmark::Counter(runs * static_cast<double>(8 * layer) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["ns a head and row"] = benchmark::Counter(runs * static_cast<double>(heads * rows) * 1e-9 / kThreads,
                                                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void conv(benchmark::State& state, uint64_t channels, uint64_t rows) {
  std::vector<float> x(channels * rows, 0.1f), y(x), w(channels * 4, 0.1f), ring(w);
  const ConvArgs a{.x = x.data(),
                   .w = w.data(),
                   .ring = ring.data(),
                   .y = y.data(),
                   .rows = rows,
                   .chan = channels,
                   .taps = 4,
                   .silu = true};
  Pool pool(kThreads);
  for ([[maybe_unused]] auto _ : state) on_all(pool, kernels(best_isa()).conv, a, items(a));
  state.counters["ns a channel and row"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(channels * rows) * 1e-9 / kThreads,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

int register_all() {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMicrosecond);
  };
  add("stream", [](benchmark::State& s) {
    Pool pool(kThreads);
    StreamRead read(best_isa(), pool, kMemories);
    double best = 0;
    for (auto _ : s) best = std::max(best, read.run());
    s.counters["GB/s"] = best * 1e-9;
  });
  for (const uint64_t heads : {16, 32})
    for (const uint64_t rows : {1, 8, 512})
      add(fmt::format("delta/{} heads/{} rows", heads, rows),
          [=](benchmark::State& s) { delta(s, heads, rows, Order::Strict); });
  add("delta/32 heads/512 rows/fast-delta", [](benchmark::State& s) { delta(s, 32, 512, Order::FastDelta); });
  for (const uint64_t rows : {1, 512})
    add(fmt::format("conv/4096 channels/{} rows", rows), [=](benchmark::State& s) { conv(s, 4096, rows); });
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace tw::lane::cpu
