// Products beside a streaming read: bytes of packed weights a second at one row and their share of what the same
// threads read in turn with them, multiply-adds at many rows.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/half.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/pool.h"
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

// A product of n x k with every byte of the weights 0x3c (scales without NaN and denormals in every format) and m rows
// of ones.
struct Setup {
  Setup(Format format, uint64_t n, uint64_t k, uint64_t m, int words)
      : weights(packed_bytes(format, n, k)), quant(quant_bytes(m * k, words)), x(m * k, 0.5f), y(m * n) {
    std::fill_n(weights.data, weights.size, std::byte{0x3c});
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

constexpr uint64_t kStreamed = uint64_t{96} << 20;  // far beyond the caches

uint64_t read_bytes(const std::byte* data, uint64_t bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t a = 0, b = 0, c = 0, d = 0;
  for (uint64_t i = 0; i + 8 <= bytes / 8; i += 8) {
    a += words[i] ^ words[i + 1];
    b += words[i + 2] ^ words[i + 3];
    c += words[i + 4] ^ words[i + 5];
    d += words[i + 6] ^ words[i + 7];
  }
  return a + b + c + d;
}

// A kernel over its items, spread evenly over threads, each with its scratch.
class Spread {
 public:
  Spread(const ProductArgs& args, int threads) : args_(args), threads_(static_cast<uint64_t>(threads)) {
    for (int t = 0; t < threads; ++t) scratch_.push_back(std::make_unique<Buffer>(scratch_bytes(args)));
  }
  void operator()(int t) const {
    const auto part = static_cast<uint64_t>(t);
    const uint64_t count = items(args_);
    kernel_(args_, {count * part / threads_, count * (part + 1) / threads_}, scratch_[part]->data);
  }

 private:
  const ProductArgs& args_;
  uint64_t threads_;
  ProductKernel kernel_ = product_kernel(best_isa());
  std::vector<std::unique_ptr<Buffer>> scratch_;
};

// Many rows on this thread, by its processor time, so that other work on the machine matters less.
void multiply(benchmark::State& state, Format format, uint64_t n, uint64_t k, uint64_t m, int words) {
  Setup setup(format, n, k, m, words);
  const Spread product(setup.args, 1);
  for ([[maybe_unused]] auto _ : state) product(0);
  const double runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] =
      benchmark::Counter(runs * static_cast<double>(setup.weights.size) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GMAC/s"] =
      benchmark::Counter(runs * static_cast<double>(n * k * m) * 1e-9, benchmark::Counter::kIsRate);
}

// One row, in turn with a read of the same bytes, since the speed of memory changes from second to second.
void decode(benchmark::State& state, Format format, int words, int threads) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kK = 4096;
  const uint64_t n = kStreamed / packed_bytes(format, 16, kK) * 16;
  Setup setup(format, n, kK, 1, words);
  Pool pool(static_cast<unsigned>(threads));
  const Spread product(setup.args, threads);
  const auto seconds = [&](const auto& work) {
    const auto from = Clock::now();
    pool.run([&](unsigned thread) { work(static_cast<int>(thread)); });
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  const auto part = setup.weights.size / static_cast<uint64_t>(threads) / 256 * 256;
  double reading = 0, multiplying = 0;
  for ([[maybe_unused]] auto _ : state) {
    reading += seconds([&](int t) { benchmark::DoNotOptimize(read_bytes(setup.weights.data + part * t, part)); });
    const double time = seconds(product);
    multiplying += time;
    state.SetIterationTime(time);
  }
  const double bytes = static_cast<double>(state.iterations()) * static_cast<double>(setup.weights.size);
  state.counters["GB/s"] = bytes / multiplying * 1e-9;
  state.counters["read GB/s"] = bytes / reading * 1e-9;
  state.counters["share"] = reading / multiplying;
  state.counters["bits"] = static_cast<double>(setup.weights.size) * 8 / static_cast<double>(n * kK);
}

constexpr Format kManyRows[] = {Format::Q8_0, Format::Q4_0,   Format::Q4_K,  Format::Q5_K, Format::Q6_K,
                                Format::Q3_K, Format::IQ4_NL, Format::MXFP4, Format::F16,  Format::F32};

int register_all() {
  for (const int threads : {1, 2})
    for (const WeightFormat& entry : weight_formats())
      for (const int words : {1, 2}) {
        if (words == 2 && is_float(entry.layout)) continue;
        const std::string name = fmt::format("decode/{}/words:{}/threads:{}", gguf::name(entry.format), words, threads);
        const Format format = entry.format;
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          decode(state, format, words, threads);
        })->UseManualTime();
      }
  for (const Format format : kManyRows)
    for (const int words : {1, 2})
      for (const uint64_t m : {8, 256})
        benchmark::RegisterBenchmark(fmt::format("prefill/{}/words:{}/rows:{}", gguf::name(format), words, m).c_str(),
                                     [=](benchmark::State& state) { multiply(state, format, 256, 1024, m, words); });
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace tw::lane::cpu
