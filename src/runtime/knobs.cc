#include "runtime/knobs.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "lane/cpu/quant.h"
#include "lane/cpu/shim.h"

namespace tw::runtime {

namespace {

uint64_t quantized_bytes(uint64_t n, uint32_t words) { return lane::cpu::quant_bytes(n, static_cast<int>(words)); }

// Bytes of a core's second-level cache, where the system tells.
uint64_t cache_bytes() {
  constexpr uint64_t kUsual = uint64_t{1} << 20;
  const int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return told > 0 ? static_cast<uint64_t>(told) : kUsual;
}

uint32_t vector_floats(lane::cpu::Isa isa) {
  switch (isa) {
    case lane::cpu::Isa::Scalar: return 1;
    case lane::cpu::Isa::Avx2: return 8;
    case lane::cpu::Isa::Avx512: return 16;
  }
  return 1;
}

}  // namespace

uint32_t threads_of(const EngineOptions& options) {
  return options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
}

lane::Dtype cache_of(const EngineOptions& options) {
  return options.cache.value_or(options.numerics == lane::Numerics::Int8 ? lane::Dtype::F16 : lane::Dtype::F32);
}

plan::Knobs knobs_of(const EngineOptions& options) {
  plan::Knobs knobs;
  knobs.numerics = options.numerics;
  knobs.order = options.order;
  knobs.cache = cache_of(options);
  knobs.state = options.state;
  knobs.held = options.held;
  knobs.chip.blocks = threads_of(options);
  knobs.chip.vector_floats = vector_floats(options.isa.value_or(lane::cpu::best_isa()));
  knobs.chip.shared_bytes = cache_bytes();
  knobs.shim = &lane::cpu::shim();
  knobs.quantized_bytes = quantized_bytes;
  return knobs;
}

}  // namespace tw::runtime
