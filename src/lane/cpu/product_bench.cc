// Products beside a streaming read of the same weights: bytes a second at one row, multiply-adds at many.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <barrier>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/half.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/product.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

struct Buffer {
  explicit Buffer(size_t bytes)
      : size((bytes + 63) / 64 * 64), data(static_cast<std::byte*>(std::aligned_alloc(64, size + 64))) {}
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  size_t size;
  std::byte* data;
};

// A product of n x k with every byte of the weights 1 (small f16 scales, no NaN) and m rows of ones.
struct Setup {
  Setup(Format format, uint64_t n, uint64_t k, uint64_t m, int words)
      : weights(packed_bytes(format, n, k)), quant(quant_bytes(m * k, words)), x(m * k, 0.5f), y(m * n) {
    std::fill_n(weights.data, weights.size, std::byte{1});
    part.w = describe(format, n, k);
    part.w.data = weights.data;
    part.y = store_rows(y.data(), n);
    args.parts = &part;
    args.part_count = 1;
    args.rows = m;
    args.words = words;
    args.x = x.data();
    args.x_pitch = k;
    args.quant = quant_view(quant.data, m * k, words);
    std::fill_n(quant.data, quant.size, std::byte{0});
    std::fill_n(args.quant.high, m * k, int8_t{3});
  }
  Buffer weights, quant;
  std::vector<float> x, y;
  ProductPart part;
  ProductArgs args;
};

template <class F>
void on_threads(benchmark::State& state, int threads, F f) {
  if (threads == 1) {  // on this thread, so that its processor time is what is measured
    for (auto _ : state) f(0);
    return;
  }
  std::barrier start(threads + 1), end(threads + 1);
  bool stop = false;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      for (;;) {
        start.arrive_and_wait();
        if (stop) return;
        f(t);
        end.arrive_and_wait();
      }
    });
  for (auto _ : state) {
    start.arrive_and_wait();
    end.arrive_and_wait();
  }
  stop = true;
  start.arrive_and_wait();
  for (std::thread& thread : pool) thread.join();
}

void multiply(benchmark::State& state, Format format, uint64_t n, uint64_t k, uint64_t m, int words, int threads) {
  Setup setup(format, n, k, m, words);
  const uint64_t count = items(setup.args);
  std::vector<std::unique_ptr<Buffer>> scratch;
  for (int t = 0; t < threads; ++t) scratch.push_back(std::make_unique<Buffer>(scratch_bytes(setup.args)));
  const ProductKernel kernel = product_kernel(best_isa());
  on_threads(state, threads, [&](int t) {
    const auto part = static_cast<uint64_t>(t), parts = static_cast<uint64_t>(threads);
    kernel(setup.args, {count * part / parts, count * (part + 1) / parts}, scratch[part]->data);
  });
  const double runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] =
      benchmark::Counter(runs * static_cast<double>(setup.weights.size) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GMAC/s"] =
      benchmark::Counter(runs * static_cast<double>(n * k * m) * 1e-9, benchmark::Counter::kIsRate);
}

void stream(benchmark::State& state, size_t bytes, int threads) {
  Buffer buffer(bytes);
  std::fill_n(buffer.data, buffer.size, std::byte{1});
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);
  on_threads(state, threads, [&](int t) {
    const auto part = static_cast<size_t>(t), parts = static_cast<size_t>(threads);
    const auto* words = reinterpret_cast<const uint64_t*>(buffer.data);
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (size_t i = bytes / 8 * part / parts; i + 8 <= bytes / 8 * (part + 1) / parts; i += 8) {
      a += words[i] ^ words[i + 1];
      b += words[i + 2] ^ words[i + 3];
      c += words[i + 4] ^ words[i + 5];
      d += words[i + 6] ^ words[i + 7];
    }
    sums[part * 8] += a + b + c + d;
  });
  benchmark::DoNotOptimize(sums.data());
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(bytes) * 1e-9, benchmark::Counter::kIsRate);
}

constexpr Format kFormats[] = {Format::Q8_0,   Format::Q4_0,  Format::Q4_K, Format::Q5_K, Format::Q6_K,
                               Format::IQ4_NL, Format::MXFP4, Format::F16,  Format::F32,  Format::Q3_K};
constexpr uint64_t kStreamed = uint64_t{192} << 20;  // far beyond the caches

// Rates are by processor time with one thread, so that other work on the machine matters less, else by real time.
template <class F>
void add(const std::string& name, int threads, F run) {
  auto* added = benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { run(state, threads); });
  if (threads > 1) added->UseRealTime();
}

int register_all() {
  for (const int threads : {1, 2}) {
    const std::string suffix = "/threads:" + std::to_string(threads);
    add("stream" + suffix, threads, [](benchmark::State& state, int t) { stream(state, kStreamed, t); });
    for (const Format format : kFormats)
      for (const int words : {1, 2})
        add(fmt::format("decode/{}/words:{}", gguf::name(format), words) + suffix, threads,
            [=](benchmark::State& state, int t) {
              const uint64_t k = 4096;
              const uint64_t n = kStreamed / packed_bytes(format, 16, k) * 16;
              multiply(state, format, n, k, 1, words, t);
            });
  }
  for (const Format format : kFormats)
    for (const int words : {1, 2})
      for (const uint64_t m : {8, 256})
        add(fmt::format("prefill/{}/words:{}/rows:{}", gguf::name(format), words, m), 1,
            [=](benchmark::State& state, int t) { multiply(state, format, 256, 1024, m, words, t); });
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace tw::lane::cpu
