#pragma once

// Quantized blocks as integers: a run is 32 consecutive values of a row, starting at a multiple of 32.
//
//   value[i] = d[h] * sc[h] * q[i] - dmin * m[h],   h = i / 16
//
// holds exactly, in every quantized format. In binary32, with one rounding an operation,
//   - d * sc and d * sc * q are exact (Q8_K apart, whose d has 24 significant bits: its product rounds once),
//   - dmin * m is exact,
// so the formula rounds each value at most once, at the subtraction (or at Q8_K's product). In binary64 it is exact as
// a whole. Kernels may sum sc[0] * S0 + sc[1] * S1 in integers before they touch d.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gguf/blocks.h"
#include "gguf/format.h"

namespace tw::gguf {

struct IntRun {
  int8_t q[32];
  float d[2];  // base scale of each half; the two are equal except in NVFP4. An infinity or a NaN of the file stays one
  int32_t sc[2];  // integer sub-scale of each half, at most 128 in magnitude; 1 where the format has none
  float dmin;     // base of the minimum; 0 where the format has none
  int32_t m[2];   // integer minimum of each half: 0 where the format has none, -1 in Q4_1 and Q5_1 (whose m is added)
};

// What may differ within a run: what a kernel has to be able to do.
enum class RunForm : uint8_t {
  Scale,          // d and sc alike in both halves, no minimum
  ScaleMin,       // the same with a minimum, m alike in both halves
  HalfScales,     // one d, a sc for each half, no minimum
  HalfScalesMin,  // one d, one dmin, a sc and an m for each half
  HalfBases,      // a d for each half, sc 1, no minimum
};

// Whether `format` is a block format, one that has runs.
bool is_quantized(Format format);

// Requires is_quantized(format).
RunForm run_form(Format format);

// Unpacks runs first, first + 1, ... of the row (or any array of whole blocks) that starts at `blocks`.
// Requires is_quantized(format). `blocks` may lie at any address.
void decode_runs(Format format, const std::byte* blocks, uint64_t first, std::span<IntRun> out);

// Run `run` of one block, run < kValues / 32.
void decode_run(const BlockQ4_0& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ4_1& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ5_0& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ5_1& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ8_0& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ4_NL& block, uint32_t run, IntRun& out);
void decode_run(const BlockMXFP4& block, uint32_t run, IntRun& out);
void decode_run(const BlockNVFP4& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ2_K& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ3_K& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ4_K& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ5_K& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ6_K& block, uint32_t run, IntRun& out);
void decode_run(const BlockQ8_K& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ2_XXS& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ2_XS& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ2_S& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ3_XXS& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ3_S& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ1_S& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ1_M& block, uint32_t run, IntRun& out);
void decode_run(const BlockIQ4_XS& block, uint32_t run, IntRun& out);
void decode_run(const BlockTQ1_0& block, uint32_t run, IntRun& out);
void decode_run(const BlockTQ2_0& block, uint32_t run, IntRun& out);

}  // namespace tw::gguf
