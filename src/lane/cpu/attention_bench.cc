// Attention of one row over a cache: multiply-adds a second of one thread, for caches in the lane's own layout and for
// rows that hold keys and values (latent attention), whose keys are turned chunk by chunk.

#include <benchmark/benchmark.h>

#include <vector>

#include "base/half.h"
#include "lane/cpu/kernels.h"

namespace tw::lane::cpu {
namespace {

struct Bench {
  uint64_t heads, kv_heads, hd, vd, length;
  bool latent;  // row-major, values inside the key rows
};

void attend(benchmark::State& state, const Bench& p) {
  const Kernels& kernels = cpu::kernels(best_isa());
  const std::vector<float> q(p.heads * p.hd, 0.25f);
  const uint16_t one = f32_to_f16(0.5f);
  const uint64_t elements = cache_elements(p.length, p.kv_heads, p.hd);
  const std::vector<uint16_t> keys(elements, one), values(cache_elements(p.length, p.kv_heads, p.vd), one);
  std::vector<float> out(p.heads * p.vd), partials(attention_partials(1, 1, p.heads, p.vd, p.length));
  AttentionArgs a{.q = q.data(),
                  .k = key_cache(keys.data(), Dtype::F16, p.length, p.kv_heads, p.hd),
                  .v = value_cache(values.data(), Dtype::F16, p.length, p.kv_heads, p.vd),
                  .out = store_rows(out.data(), p.vd),
                  .partials = partials.data(),
                  .heads = p.heads,
                  .kv_heads = p.kv_heads,
                  .hd = p.hd,
                  .vd = p.vd,
                  .length = p.length,
                  .scale = 0.1f};
  if (p.latent) a.k = a.v = cache_rows(keys.data(), Dtype::F16, p.length, p.kv_heads, p.hd);
  std::vector<float> scratch(attention_scratch_bytes(a) / sizeof(float) + 16);
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  for (auto _ : state) {
    kernels.attention_chunks(a, {0, attention_chunks_items(a)}, aligned);
    kernels.attention_merge(a, {0, attention_merge_items(a)}, aligned);
    benchmark::DoNotOptimize(out.data());
  }
  const auto sums = static_cast<double>(state.iterations()) * static_cast<double>(p.heads * (p.hd + p.vd) * p.length);
  state.counters["multiply_adds"] = benchmark::Counter(sums, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(attend, grouped_blocks, Bench{32, 8, 128, 128, 1024, false});
BENCHMARK_CAPTURE(attend, shared_blocks, Bench{16, 1, 576, 512, 1024, false});
BENCHMARK_CAPTURE(attend, latent_16_heads, Bench{16, 1, 576, 512, 1024, true});
BENCHMARK_CAPTURE(attend, latent_128_heads, Bench{128, 1, 576, 512, 1024, true});

}  // namespace
}  // namespace tw::lane::cpu
