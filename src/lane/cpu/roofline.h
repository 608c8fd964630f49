#pragma once

// What this machine can do, measured on the spot with the kernels' own instructions: the limits that a step is held
// against.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lane/cpu/isa.h"
#include "lane/cpu/large_memory.h"
#include "lane/cpu/pool.h"

namespace tw::lane::cpu {

// The rate at which all threads of a pool read memory that lies in the same level of the caches as `bytes` bytes do.
// Each thread reads four streams at once: one alone does not keep the memory busy. The pages are large where the system
// gives them, as those of weights are.
class StreamRead {
 public:
  // Takes as much memory as is read, at most kMostBytes.
  StreamRead(Isa isa, Pool& pool, uint64_t bytes);
  double run();  // bytes a second of passes that take some milliseconds

  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;

 private:
  Isa isa_;
  Pool* pool_;
  uint64_t part_;  // bytes of a thread
  std::vector<LargeMemory> parts_;
};

// Multiply-adds a second of exact dot products of 8-bit integers by all threads of a pool, operands and sums in
// registers; a multiply-add counts as one. Both are the fastest loops known for the instruction set.
struct DotPeaks {
  double bytes = 0;  // any bytes (signed by unsigned up to 128)
  double codes = 0;  // codes up to 31 by bytes: without a dot instruction, four products fit 16 bits before a widening
  [[nodiscard]] double best() const { return bytes > codes ? bytes : codes; }
};
DotPeaks dot_peaks(Isa isa, Pool& pool, uint32_t repeats);  // the best of `repeats`

// The loops behind, one set an instruction set: what they return keeps the work from being left out.
struct DotLoop {
  int32_t (*run)(uint64_t rounds) = nullptr;
  uint64_t products = 0;  // a round
};
struct RooflineKernels {
  uint32_t (*read)(const void* data, uint64_t bytes);  // a checksum; bytes a multiple of kReadStep
  DotLoop bytes, codes;
};
inline constexpr uint64_t kReadStreams = 4;
inline constexpr uint64_t kReadStep = kReadStreams * 256;
RooflineKernels roofline_scalar();
RooflineKernels roofline_avx2();
RooflineKernels roofline_avx512();

}  // namespace tw::lane::cpu
