#include "lane/cpu/reference/reference.h"

#include <algorithm>

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

}  // namespace tw::lane::cpu::reference
