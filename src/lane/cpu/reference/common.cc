#include "lane/cpu/reference/reference.h"

#include <algorithm>
#include <cmath>

namespace tw::lane::cpu::reference {
namespace {

// The sum of one piece of at most 1024 terms; term(i, acc) adds term i, or +0 * +0 beyond the end.
template <class Term>
float piece(size_t begin, size_t end, Term term) {
  float lane[32] = {};
  const size_t padded = begin + (end - begin + 31) / 32 * 32;
  for (size_t i = begin; i < padded; ++i) lane[i % 32] = term(i, lane[i % 32]);
  for (size_t h = 16; h > 0; h /= 2)
    for (size_t l = 0; l < h; ++l) lane[l] = lane[l] + lane[l + h];
  return lane[0];
}

template <class Term>
float pieces(size_t n, Term term) {
  float total = 0;
  for (size_t begin = 0; begin < n; begin += 1024) total = total + piece(begin, std::min(n, begin + 1024), term);
  return total;
}

}  // namespace

float lane_tree(const std::vector<float>& x, const std::vector<float>& y) {
  return pieces(x.size(), [&](size_t i, float acc) {
    return i < x.size() ? math::fma(x[i], y[i], acc) : math::fma(0.0f, 0.0f, acc);
  });
}

float lane_tree(const std::vector<float>& x) {
  return pieces(x.size(), [&](size_t i, float acc) { return acc + (i < x.size() ? x[i] : 0.0f); });
}

float chain_of_chains(const std::vector<float>& x, const std::vector<float>& y, size_t segment) {
  float total = 0;
  for (size_t begin = 0; begin < x.size(); begin += segment) {
    float chain = 0;
    for (size_t i = begin; i < std::min(x.size(), begin + segment); ++i) chain = math::fma(x[i], y[i], chain);
    total = total + chain;
  }
  return total;
}

float activate(graph::ActivationKind act, float x) {
  switch (act) {
    case graph::ActivationKind::Silu: return math::silu(x);
    case graph::ActivationKind::Sigmoid: return math::sigmoid(x);
    case graph::ActivationKind::GeluTanh: return math::gelu(x);
    case graph::ActivationKind::Relu: return math::relu(x);
    case graph::ActivationKind::Softplus: return math::softplus(x);
    case graph::ActivationKind::Tanh: return math::tanh(x);
    case graph::ActivationKind::Exp: return math::exp(x);
  }
  return x;
}

float widen(Dtype type, const void* data, uint64_t element) {
  if (type == Dtype::F16) return f16_to_f32(static_cast<const uint16_t*>(data)[element]);
  if (type == Dtype::BF16) return bf16_to_f32(static_cast<const uint16_t*>(data)[element]);
  return static_cast<const float*>(data)[element];
}

void narrow(Dtype type, void* data, uint64_t element, float value) {
  if (type == Dtype::F16)
    static_cast<uint16_t*>(data)[element] = f32_to_f16(value);
  else if (type == Dtype::BF16)
    static_cast<uint16_t*>(data)[element] = f32_to_bf16(value);
  else
    static_cast<float*>(data)[element] = value;
}

std::vector<float> rms_norm(const std::vector<float>& v, float eps, const float* weight, const float* bias) {
  const float r = math::rsq(lane_tree(v, v) / static_cast<float>(v.size()) + eps);
  std::vector<float> y(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    y[i] = v[i] * r;
    if (weight != nullptr) y[i] = y[i] * weight[i];
    if (bias != nullptr) y[i] = y[i] + bias[i];
  }
  return y;
}

void quantize(const float* x, const QuantView& to, uint64_t block, int words) {
  const float steps = words == 1 ? 127.0f : 32512.0f;
  float largest = 0;
  for (uint64_t i = 0; i < 32; ++i)
    largest = std::isnan(x[i]) || std::isnan(largest) ? std::nanf("") : std::max(largest, std::fabs(x[i]));
  const bool empty = largest < 0x1p-100f;
  to.scale[block] = empty ? 0.0f : largest / steps;
  uint32_t sum_high = 0, sum_low = 0, sum_half = 0;
  for (uint64_t i = 0; i < 32; ++i) {
    const float scaled = empty ? 0.0f : x[i] * (steps / largest);
    // Only a block with a NaN or an infinity is out of range; its values mean nothing, its scale says so.
    const int32_t v = std::fabs(scaled) < 0x1p31f ? static_cast<int32_t>(std::nearbyint(scaled)) : INT32_MIN;
    const int32_t high = words == 1 ? v : static_cast<int32_t>(static_cast<uint32_t>(v) + 128u) >> 8;
    const auto low = static_cast<int32_t>(static_cast<uint32_t>(v) - 256u * static_cast<uint32_t>(high));
    to.high[block * 32 + i] = static_cast<int8_t>(high);
    to.wide[block * 32 + i] = static_cast<int16_t>(v);
    sum_high += static_cast<uint32_t>(high);
    if (i < 16) sum_half += static_cast<uint32_t>(v);
    if (words == 1) continue;
    to.low[block * 32 + i] = static_cast<int8_t>(low);
    sum_low += static_cast<uint32_t>(low);
  }
  to.sum_high[block] = static_cast<int32_t>(sum_high);
  to.sum_half[block] = static_cast<int32_t>(sum_half);
  if (words == 2) to.sum_low[block] = static_cast<int32_t>(sum_low);
}

void store(const Store& to, uint64_t unit, uint64_t first, const std::vector<float>& values) {
  const uint64_t sequence = to.sequence_units == 0 ? 0 : unit / to.sequence_units;
  const uint64_t table = to.sequence_units == 0 ? 0 : sequence_begin(to.tables, sequence, to.size);
  const uint64_t row = (to.position != nullptr ? static_cast<uint64_t>(to.position[sequence]) : to.fixed) - 1;
  const uint64_t begin =
      row * to.row_pitch + (unit - sequence * to.sequence_units) * to.unit_pitch + to.unit_offset + first;
  for (uint64_t i = 0; to.data != nullptr && i < values.size(); ++i) {
    uint64_t at = begin + i;
    if (to.form != Store::Form::Rows) {
      const uint64_t j = at / to.row_pitch;
      const uint64_t head = at % to.row_pitch / to.head_width;
      const uint64_t e = at % to.row_pitch % to.head_width;
      const bool blocks = to.form == Store::Form::KeyBlocks;
      at = head * to.head_stride + (blocks ? (j / 16 * to.head_width + e) * 16 + j % 16 : j * to.head_width + e);
    }
    narrow(to.type, to.data, table + at, values[i]);
  }
  for (uint64_t i = 0; to.quant.scale != nullptr && i < values.size(); i += 32)
    quantize(values.data() + i, to.quant, (begin + i) / 32, to.words);
}

}  // namespace tw::lane::cpu::reference
