// Attention beside what limits it, measured in the same run: bytes of cache a second at one row (the streaming read),
// multiply-adds a second at many (the fma peak). Every iteration takes another layer's caches, so that decode reads
// memory and not a cache that holds them.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <immintrin.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "base/half.h"
#include "lane/cpu/kernels.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/roofline.h"

namespace tw::lane::cpu {
namespace {

struct Shape {
  const char* name;
  uint64_t heads, kv_heads, hd, vd;
  bool latent = false;  // row-major, values inside the key rows
};

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Memory = std::unique_ptr<std::byte, Free>;
Memory lines(uint64_t bytes) {
  return Memory(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
}

constexpr uint64_t kCaches = uint64_t{160} << 20;  // bytes of all layers together, far beyond the processor's caches

// Caches of several layers, queries and results of `rows` rows that end at position `length`.
struct Setup {
  Setup(const Shape& shape, Dtype type, uint64_t length, uint64_t rows, unsigned threads)
      : p(shape), type_bytes(bytes_of(type)) {
    layer = cache_elements(length, p.kv_heads, p.hd) * type_bytes;
    value_layer = p.latent ? 0 : cache_elements(length, p.kv_heads, p.vd) * type_bytes;
    layers = std::max<uint64_t>(1, rows > 8 ? 1 : kCaches / (layer + value_layer));
    keys = lines(layer * layers);
    values = lines(value_layer * layers);
    fill(keys.get(), layer * layers / type_bytes, type);
    fill(values.get(), value_layer * layers / type_bytes, type);
    q.assign(rows * p.heads * p.hd, 0.25f);
    out.resize(rows * p.heads * p.vd);
    if (rows <= kFewAttentionRows) partials.resize(attention_partials(1, rows, p.heads, p.vd, length));
    position = static_cast<int32_t>(length - rows + 1);
    a = {.q = q.data(),
         .k = key_cache(keys.get(), type, length, p.kv_heads, p.hd),
         .v = value_cache(values.get(), type, length, p.kv_heads, p.vd),
         .position = &position,
         .out = store_rows(out.data(), p.vd),
         .partials = partials.data(),
         .rows = rows,
         .heads = p.heads,
         .kv_heads = p.kv_heads,
         .hd = p.hd,
         .vd = p.vd,
         .length = length,
         .scale = 0.1f};
    if (p.latent) a.k = a.v = cache_rows(keys.get(), type, length, p.kv_heads, p.hd);
    for (unsigned t = 0; t < threads; ++t) scratch.push_back(lines(attention_scratch_bytes(a)));
  }
  static void fill(std::byte* to, uint64_t count, Dtype type) {
    const uint16_t half = f32_to_f16(0.5f);
    if (type == Dtype::F32) return std::fill_n(reinterpret_cast<float*>(to), count, 0.5f), void();
    std::fill_n(reinterpret_cast<uint16_t*>(to), count, half);
  }
  void take_layer(uint64_t i) {
    a.k.data = keys.get() + i % layers * layer;
    a.v.data = p.latent ? a.k.data : values.get() + i % layers * value_layer;
  }

  Shape p;
  uint64_t type_bytes, layer, value_layer, layers;
  Memory keys, values;
  std::vector<float> q, out, partials;
  int32_t position;
  AttentionArgs a;
  std::vector<Memory> scratch;
};

// All items in turns, as a program shares them out.
void take_turns(Kernel<AttentionArgs> kernel, const Setup& setup, uint64_t count, ItemCounter& counter, unsigned thread,
                unsigned threads) {
  const uint64_t turns = std::min<uint64_t>(count, 16 * threads);
  for (Range i = counter.next(turns, 1); i.begin < i.end; i = counter.next(turns, 1))
    kernel(setup.a, {count * i.begin / turns, count * i.end / turns}, setup.scratch[thread].get());
}

void attend(benchmark::State& state, const Shape& p, Dtype type, uint64_t length, uint64_t rows, unsigned threads) {
  Setup setup(p, type, length, rows, threads);
  const Kernels& kernels = cpu::kernels(best_isa());
  Pool pool(threads);
  ItemCounter first, second;
  uint64_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    setup.take_layer(i++);
    first.reset();
    second.reset();
    pool.run([&](unsigned thread) {
      if (rows > kFewAttentionRows)
        return take_turns(kernels.attention_rows, setup, attention_rows_items(setup.a), first, thread, threads);
      take_turns(kernels.attention_chunks, setup, attention_chunks_items(setup.a), first, thread, threads);
      pool.barrier();
      take_turns(kernels.attention_merge, setup, attention_merge_items(setup.a), second, thread, threads);
    });
  }
  const auto runs = static_cast<double>(state.iterations());
  const auto rate = [&](double amount) {
    return benchmark::Counter(runs * amount * 1e-9, benchmark::Counter::kIsRate);
  };
  state.counters["GB/s"] = rate(static_cast<double>(setup.layer + setup.value_layer));
  const uint64_t pairs = rows * length - rows * (rows - 1) / 2;
  state.counters["GMAC/s"] = rate(static_cast<double>(pairs * p.heads * (p.hd + p.vd)));
}

void stream(benchmark::State& state, unsigned threads) {
  Pool pool(threads);
  StreamRead read(best_isa(), pool, kCaches);
  double best = 0;
  for ([[maybe_unused]] auto _ : state) best = std::max(best, read.run());
  state.counters["GB/s"] = best * 1e-9;
}

// Twelve independent chains of 8-lane fma.
[[gnu::target("avx2,fma")]] float fma_rounds(uint64_t rounds) {
  __m256 s[12];
  for (auto& x : s) x = _mm256_set1_ps(1.0f);
  const __m256 one = _mm256_set1_ps(0.999f);
  for (uint64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (auto& x : s) x = _mm256_fmadd_ps(x, one, one);
  }
  float sum = 0;
  for (const auto& x : s) sum += _mm256_cvtss_f32(x);
  return sum;
}

void fma_peak(benchmark::State& state, unsigned threads) {
  Pool pool(threads);
  constexpr uint64_t kRounds = 1 << 20;
  std::vector<float> sums(threads * 16);
  for ([[maybe_unused]] auto _ : state) pool.run([&](unsigned thread) { sums[thread * 16] = fma_rounds(kRounds); });
  benchmark::DoNotOptimize(sums.data());
  state.counters["GMAC/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 96.0 * kRounds * threads * 1e-9, benchmark::Counter::kIsRate);
}

constexpr Shape kShapes[] = {
    {"16/8x128", 16, 8, 128, 128}, {"32/8x128", 32, 8, 128, 128},           {"16/2x256", 16, 2, 256, 256},
    {"64/8x64", 64, 8, 64, 64},    {"16/1x576+512", 16, 1, 576, 512, true},
};

int register_all() {
  const unsigned threads = 2;
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMicrosecond);
  };
  add("stream", [](benchmark::State& s) { stream(s, threads); });
  add("fma", [](benchmark::State& s) { fma_peak(s, threads); });
  for (const Shape& p : kShapes)
    for (const Dtype type : {Dtype::F16, Dtype::F32}) {
      for (const uint64_t length : {512, 4096, 32768})
        add(fmt::format("decode/{}/{}/{}", p.name, name(type), length),
            [=](benchmark::State& s) { attend(s, p, type, length, 1, threads); });
      for (const uint64_t length : {512, 4096})
        add(fmt::format("prefill/{}/{}/512 of {}", p.name, name(type), length),
            [=](benchmark::State& s) { attend(s, p, type, length, 512, threads); });
    }
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace tw::lane::cpu
