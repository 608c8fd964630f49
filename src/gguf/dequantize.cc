// Widening: one formula over unpacked runs for the block formats, one conversion for the plain elements.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "gguf/decode.h"
#include "gguf/format.h"

namespace tw::gguf {
namespace {

// The formula of decode.h, in the order that keeps every product exact.
template <class Real>
void widen_run(const IntRun& run, Real* out) {
  for (size_t h = 0; h < 2; ++h) {
    const Real scale = static_cast<Real>(run.d[h]) * static_cast<Real>(run.sc[h]);
    const Real min = static_cast<Real>(run.dmin) * static_cast<Real>(run.m[h]);
    for (size_t j = 16 * h; j < 16 * h + 16; ++j) out[j] = scale * static_cast<Real>(run.q[j]) - min;
  }
}

template <class Real>
void widen_blocks(Format format, const std::byte* blocks, Real* out, uint64_t count) {
  constexpr uint64_t kBatch = 8;  // the runs of a super-block
  std::array<IntRun, kBatch> runs;
  for (uint64_t first = 0; first < count / 32; first += kBatch) {
    const uint64_t n = std::min(kBatch, count / 32 - first);
    decode_runs(format, blocks, first, {runs.data(), n});
    for (uint64_t r = 0; r < n; ++r) widen_run(runs[r], out + 32 * (first + r));
  }
}

template <class Element, class Real, class Convert>
void widen_elements(const std::byte* in, Real* out, uint64_t count, Convert convert) {
  for (uint64_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, in + i * sizeof element, sizeof element);
    out[i] = static_cast<Real>(convert(element));
  }
}

template <class Real>
void widen(Format format, const std::byte* blocks, Real* out, uint64_t count) {
  TW_CHECK(count % info(format).block == 0, "{} values are not whole blocks of {}", count, name(format));
  const auto same = [](auto element) { return element; };
  switch (format) {
    case Format::F32: return widen_elements<float>(blocks, out, count, same);
    case Format::F16: return widen_elements<uint16_t>(blocks, out, count, f16_to_f32);
    case Format::BF16: return widen_elements<uint16_t>(blocks, out, count, bf16_to_f32);
    case Format::F64: return widen_elements<double>(blocks, out, count, same);
    case Format::I8: return widen_elements<int8_t>(blocks, out, count, same);
    case Format::I16: return widen_elements<int16_t>(blocks, out, count, same);
    case Format::I32: return widen_elements<int32_t>(blocks, out, count, same);
    case Format::I64: return widen_elements<int64_t>(blocks, out, count, same);
    default: return widen_blocks(format, blocks, out, count);
  }
}

}  // namespace

void dequantize(Format format, const std::byte* blocks, float* out, uint64_t count) {
  widen(format, blocks, out, count);
}

void dequantize_exact(Format format, const std::byte* blocks, double* out, uint64_t count) {
  widen(format, blocks, out, count);
}

}  // namespace tw::gguf
