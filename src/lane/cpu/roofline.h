#pragma once

// What this machine can do, measured on the spot with the kernels' own instructions: the two limits that a step is held
// against.

#include <cstdint>

#include "lane/cpu/isa.h"
#include "lane/cpu/pool.h"

namespace tw::lane::cpu {

// Bytes a second of a streaming read by all threads of the pool over `bytes` (at least 1 MiB), the best of `repeats`.
double stream_read_bandwidth(Isa isa, Pool& pool, uint64_t bytes, uint32_t repeats);

// Multiply-adds a second of 8-bit dot products whose operands stay in registers, by all threads, the best of `repeats`.
double int8_dot_peak(Isa isa, Pool& pool, uint32_t repeats);

// The kernels behind, one a set of instructions: `checksum` and `dots` keep the work from being left out.
struct RooflineKernels {
  uint32_t (*read)(const void* data, uint64_t bytes);  // bytes a multiple of 256
  int32_t (*dots)(uint64_t rounds);                    // kDotsARound multiply-adds a round
};
inline constexpr uint64_t kDotsARound = 8 * 64;
RooflineKernels roofline_scalar();
RooflineKernels roofline_avx2();
RooflineKernels roofline_avx512();

}  // namespace tw::lane::cpu
