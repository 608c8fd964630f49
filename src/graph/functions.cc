#include "graph/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace tw::graph {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
double gelu_tanh(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}
// e^x would overflow for a large x, where ln(1 + e^x) = x + ln(1 + e^-x).
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double activate(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::Silu: return silu(x);
    case ActivationKind::Sigmoid: return sigmoid(x);
    case ActivationKind::GeluTanh: return gelu_tanh(x);
    case ActivationKind::Relu: return std::max(x, 0.0);
    case ActivationKind::Softplus: return softplus(x);
    case ActivationKind::Tanh: return std::tanh(x);
    case ActivationKind::Exp: return std::exp(x);
  }
  TW_CHECK(false, "activation kind {}", static_cast<int>(kind));
}

double dot(std::span<const double> a, std::span<const double> b) {
  TW_CHECK(a.size() == b.size(), "a dot of {} and {} values", a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double softcapped(double x, double cap) { return cap * std::tanh(x / cap); }

void softmax(std::span<double> x, std::optional<double> sink) {
  double most = sink.value_or(-std::numeric_limits<double>::infinity());
  for (const double value : x) most = std::max(most, value);
  double sum = sink ? std::exp(*sink - most) : 0;
  for (double& value : x) sum += value = std::exp(value - most);
  for (double& value : x) value /= sum;
}

double mean_square(std::span<const double> x) { return dot(x, x) / static_cast<double>(x.size()); }

Integer floor_div(Integer a, Integer b) {
  const Integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::optional<int32_t> as_i32(double x) {
  if (!(x >= -0x1p31 && x < 0x1p31) || x != std::floor(x)) return std::nullopt;
  return static_cast<int32_t>(x);
}

std::optional<int32_t> as_i32(Integer x) {
  if (x < std::numeric_limits<int32_t>::min() || x > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(x);
}

}  // namespace tw::graph
