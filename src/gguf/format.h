#pragma once

// Element and block formats of GGUF tensors, and their conversion to and from floating point.
// A row of a tensor is a whole number of blocks; a block holds `block` values in `block_bytes` bytes, little-endian.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace tw::gguf {

enum class Format : uint8_t {
  F32,
  F16,
  BF16,
  F64,
  I8,
  I16,
  I32,
  I64,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  Q8_K,
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ4_NL,
  IQ4_XS,
  TQ1_0,
  TQ2_0,
  MXFP4,
  NVFP4,
};
inline constexpr size_t kFormatCount = static_cast<size_t>(Format::NVFP4) + 1;

struct FormatInfo {
  Format format;
  std::string_view name;  // as GGUF tools print it: "Q4_K", "F16"
  uint32_t id;            // ggml_type of the file
  uint32_t block;         // values a block
  uint32_t block_bytes;   // bytes a block
  bool quantizes;         // quantize() takes it

  bool operator==(const FormatInfo&) const = default;
};

std::span<const FormatInfo> all_formats();
const FormatInfo& info(Format format);
std::string_view name(Format format);
std::optional<Format> format_of_id(uint32_t id);
std::optional<Format> format_of_name(std::string_view name);  // case-insensitive

// Bytes of `values` values. Requires values to be a whole number of blocks.
uint64_t bytes_of(Format format, uint64_t values);

// Widens `count` values; `blocks` may lie at any address. Requires count to be a whole number of blocks. dequantize
// (f32) rounds each value at most once, so it is the rounding of the exact value; dequantize_exact (f64) gives that
// exact value of the stored numbers (an I64 beyond 2^53 is rounded). decode.h gives the formula and the integers.
void dequantize(Format format, const std::byte* blocks, float* out, uint64_t count);
void dequantize_exact(Format format, const std::byte* blocks, double* out, uint64_t count);

// Narrows `count` values. Requires info(format).quantizes and whole blocks. F32, F16 and BF16 round each value to
// nearest even. A block format takes the scales that a least-squares search finds (quantize_fit.h) and for each value
// the nearest level of its scale; in these a NaN counts as 0 and an infinity as the largest number of its sign, and
// what is beyond the largest scale saturates. Deterministic: a block's bytes depend on its own values only.
void quantize(Format format, const float* values, std::byte* blocks, uint64_t count);

}  // namespace tw::gguf
