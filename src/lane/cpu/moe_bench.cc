// Mixtures phase by phase, beside a plain product of the same format: multiply-adds a second at many rows, bytes of
// weights a second at one. Every iteration takes another layer's experts, so that their weights come from memory.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "lane/cpu/kernels.h"
#include "lane/cpu/moe.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/roofline.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;
using Clock = std::chrono::steady_clock;

constexpr unsigned kThreads = 2;
constexpr uint64_t kLayersBytes = uint64_t{96} << 20;  // far beyond the caches
constexpr const char* kPhaseNames[kMoePhases] = {"logits", "choose", "group", "hidden", "down", "combine"};

struct Buffer {
  explicit Buffer(size_t bytes)
      : size((bytes + 63) / 64 * 64), data(static_cast<std::byte*>(std::aligned_alloc(64, size + 64))) {
    std::fill_n(data, size, std::byte{1});  // touched; as weights small scales, no NaN
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  size_t size;
  std::byte* data;
};

struct Shape {
  const char* name;
  uint64_t d;
  uint32_t experts, used, hidden;
  Format format;
};

std::vector<float> bell(uint64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> values(0.0, 1.0);
  std::vector<float> out(count);
  for (float& value : out) value = static_cast<float>(values(random));
  return out;
}

// Experts of several layers and `rows` rows of random input.
struct Setup {
  Setup(const Shape& shape, uint64_t rows)
      : x(bell(rows * shape.d, 1)), y(rows * shape.d), quant(quant_bytes(rows * shape.d, 1)) {
    args.spec.experts = shape.experts;
    args.spec.used = shape.used;
    args.spec.hidden = shape.hidden;
    args.rows = rows;
    args.d = args.x_pitch = shape.d;
    args.x = x.data();
    args.quant = quant_view(quant.data, rows * shape.d, 1);
    const QuantArgs from{args.x, args.quant, rows, shape.d, shape.d, 1};
    kernels(best_isa()).quant(from, {0, items(from)}, nullptr);
    args.router = packed(Format::F32, shape.experts, shape.d, 1);
    const std::vector<float> router = bell(args.router.bytes() / sizeof(float), 2);
    std::copy(router.begin(), router.end(), reinterpret_cast<float*>(storage.back()->data));
    args.gate = packed(shape.format, shape.hidden, shape.d, shape.experts);
    args.up = packed(shape.format, shape.hidden, shape.d, shape.experts);
    args.down = packed(shape.format, shape.d, shape.hidden, shape.experts);
    layers.push_back({args.gate, args.up, args.down});
    while (layers.size() * layer_bytes() < kLayersBytes)
      layers.push_back({packed(shape.format, shape.hidden, shape.d, shape.experts),
                        packed(shape.format, shape.hidden, shape.d, shape.experts),
                        packed(shape.format, shape.d, shape.hidden, shape.experts)});
    args.y = store_rows(y.data(), shape.d);
    work = std::make_unique<Buffer>(moe_work(args, nullptr).bytes);
    args.work = moe_work(args, work->data);
    for (auto& s : scratch) s = std::make_unique<Buffer>(moe_scratch(args, nullptr).bytes);
  }
  Packed packed(Format format, uint64_t n, uint64_t k, uint64_t groups) {
    Packed w = describe(format, n, k, groups);
    storage.push_back(std::make_unique<Buffer>(w.bytes()));
    w.data = storage.back()->data;
    return w;
  }
  [[nodiscard]] uint64_t layer_bytes() const { return args.gate.bytes() + args.up.bytes() + args.down.bytes(); }
  void take_layer(uint64_t i) {
    args.gate = layers[i % layers.size()].gate;
    args.up = layers[i % layers.size()].up;
    args.down = layers[i % layers.size()].down;
  }

  struct Layer {
    Packed gate, up, down;
  };
  std::vector<float> x, y;
  Buffer quant;
  std::vector<std::unique_ptr<Buffer>> storage;
  std::vector<Layer> layers;
  std::unique_ptr<Buffer> work, scratch[kThreads];
  MoeArgs args;
};

// Shares of a phase's items as they come free, as a program hands them out.
void take_turns(const MoePhase& phase, const Setup& setup, ItemCounter& counter, unsigned thread) {
  const uint64_t count = phase.items(setup.args);
  const auto next = [&] { return counter.next_of_rest(count, kThreads * 4); };
  for (Range range = next(); range.begin < range.end; range = next())
    phase.run(setup.args, range, setup.scratch[thread]->data);
}

void mixture(benchmark::State& state, const Shape& shape, uint64_t rows) {
  Setup setup(shape, rows);
  const MoeKernels& kernels = moe_kernels(best_isa());
  Pool pool(kThreads);
  double seconds[kMoePhases] = {}, all = 0;
  uint64_t layer = 0;
  for ([[maybe_unused]] auto _ : state) {
    setup.take_layer(layer++);
    ItemCounter counters[kMoePhases];
    Clock::time_point at[kMoePhases + 1];
    pool.run([&](unsigned thread) {
      if (thread == 0) at[0] = Clock::now();
      for (int p = 0; p < kMoePhases; ++p) {
        take_turns(kernels.phases[p], setup, counters[p], thread);
        pool.barrier();
        if (thread == 0) at[p + 1] = Clock::now();
      }
    });
    const std::chrono::duration<double> time = at[kMoePhases] - at[0];
    all += time.count();
    state.SetIterationTime(time.count());
    for (int p = 0; p < kMoePhases; ++p) seconds[p] += std::chrono::duration<double>(at[p + 1] - at[p]).count();
  }
  const auto runs = static_cast<double>(state.iterations());
  for (int p = 0; p < kMoePhases; ++p)
    state.counters[fmt::format("{} {}", p, kPhaseNames[p])] = seconds[p] / runs * 1e6;
  const auto weights = static_cast<double>(3 * shape.d * shape.hidden);
  state.counters["GMAC/s"] = runs * weights * static_cast<double>(rows * shape.used) / all * 1e-9;
  const double active = *setup.args.work.active_count;
  state.counters["active"] = active;
  state.counters["GB/s"] = runs * static_cast<double>(setup.layer_bytes()) / shape.experts * active / all * 1e-9;
}

// A product of as many multiply-adds as an expert of each row has.
void plain(benchmark::State& state, const Shape& shape, uint64_t rows) {
  Setup setup(shape, rows);
  const uint64_t n = uint64_t{3} * shape.hidden;
  const Packed w = setup.packed(shape.format, n, shape.d, 1);
  std::vector<float> y(rows * n);
  ProductPart part;
  part.w = w;
  part.y = store_rows(y.data(), n);
  ProductArgs args;
  args.parts = &part;
  args.part_count = 1;
  args.rows = rows;
  args.x = setup.args.x;
  args.x_pitch = shape.d;
  args.quant = setup.args.quant;
  const ProductKernel kernel = product_kernel(best_isa());
  Pool pool(kThreads);
  const Buffer scratch[kThreads] = {Buffer(scratch_bytes(args)), Buffer(scratch_bytes(args))};
  double all = 0;
  for ([[maybe_unused]] auto _ : state) {
    const auto from = Clock::now();
    pool.run([&](unsigned thread) {
      kernel(args, {items(args) * thread / kThreads, items(args) * (thread + 1) / kThreads}, scratch[thread].data);
    });
    const std::chrono::duration<double> time = Clock::now() - from;
    all += time.count();
    state.SetIterationTime(time.count());
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GMAC/s"] = runs * static_cast<double>(n * shape.d * rows) / all * 1e-9;
}

constexpr Shape kShapes[] = {
    {"64x8/1024x256/Q4_K", 1024, 64, 8, 256, Format::Q4_K},
    {"64x8/1024x256/Q8_0", 1024, 64, 8, 256, Format::Q8_0},
    {"24x4/1024x1024/MXFP4", 1024, 24, 4, 1024, Format::MXFP4},
};

int register_all() {
  for (const Shape& shape : kShapes) {
    const auto add = [&](const std::string& name, auto run) {
      benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond);
    };
    add(fmt::format("plain/{}/rows:512", shape.name), [=](benchmark::State& s) { plain(s, shape, 512); });
    for (const uint64_t rows : {1, 8, 64, 512})
      add(fmt::format("moe/{}/rows:{}", shape.name, rows), [=](benchmark::State& s) { mixture(s, shape, rows); });
  }
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace tw::lane::cpu
