// Narrowing: rounding for the plain elements, an encoder a block for the others.

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "base/check.h"
#include "base/half.h"
#include "gguf/format.h"
#include "gguf/quantize_blocks.h"
#include "gguf/quantize_fit.h"

namespace tw::gguf {
namespace {

using Quantize = void (*)(const float* values, std::byte* blocks, uint64_t count);

template <class Element, Element (*convert)(float)>
void narrow_elements(const float* values, std::byte* blocks, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const Element element = convert(values[i]);
    std::memcpy(blocks + i * sizeof element, &element, sizeof element);
  }
}

void copy_elements(const float* values, std::byte* blocks, uint64_t count) {
  std::memcpy(blocks, values, count * sizeof(float));
}

// A scale shared by many values must be finite: a NaN becomes 0, an infinity the largest number of its sign.
float finite(float value) {
  if (std::isnan(value)) return 0.0f;
  if (std::isinf(value)) return std::copysign(std::numeric_limits<float>::max(), value);
  return value;
}

// Multiplies by 2^-exponent in two steps, each of a power of two that is a normal number.
void normalize(std::span<float> values, int exponent) {
  const float first = std::ldexp(1.0f, -exponent / 2);
  const float second = std::ldexp(1.0f, -(exponent - exponent / 2));
  for (float& value : values) value = value * first * second;
}

template <class Block>
void encode_blocks(const float* values, std::byte* blocks, uint64_t count) {
  std::array<float, Block::kValues> x;
  for (uint64_t b = 0; b < count / Block::kValues; ++b) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = finite(values[b * Block::kValues + i]);
    const float most = extreme(x);
    const int exponent = most == 0.0f ? 0 : std::ilogb(most);
    normalize(x, exponent);
    Block block;
    encode_block({x, exponent}, block);
    std::memcpy(blocks + b * sizeof block, &block, sizeof block);
  }
}

template <class Block>
constexpr Quantize encoder() {
  if constexpr (Encodable<Block>)
    return encode_blocks<Block>;
  else
    return nullptr;
}

template <class... Blocks>
constexpr std::array<Quantize, kFormatCount> make_quantizers(std::tuple<Blocks...>*) {
  std::array<Quantize, kFormatCount> table{};
  table[static_cast<size_t>(Format::F32)] = copy_elements;
  table[static_cast<size_t>(Format::F16)] = narrow_elements<uint16_t, f32_to_f16>;
  table[static_cast<size_t>(Format::BF16)] = narrow_elements<uint16_t, f32_to_bf16>;
  ((table[static_cast<size_t>(Blocks::kFormat)] = encoder<Blocks>()), ...);
  return table;
}

// By format; null for the formats that are only read.
constexpr std::array<Quantize, kFormatCount> kQuantizers = make_quantizers(static_cast<BlockTypes*>(nullptr));

}  // namespace

void quantize(Format format, const float* values, std::byte* blocks, uint64_t count) {
  const FormatInfo& entry = info(format);
  const Quantize run = kQuantizers[static_cast<size_t>(format)];
  TW_CHECK(entry.quantizes && run != nullptr, "{} is only read", entry.name);
  TW_CHECK(count % entry.block == 0, "{} values are not whole blocks of {}", count, entry.name);
  run(values, blocks, count);
}

}  // namespace tw::gguf
