#pragma once

// Norms and softmax (norm.h), as templates over the instruction set.

#include "base/math_contract.h"
#include "lane/cpu/norm.h"
#include "lane/cpu/reduce.h"

namespace tw::lane::cpu {

// y = (x * r) (* weight) (+ bias), each rounded.
template <class S>
TW_INLINE inline void scale_row(const float* x, float r, const float* weight, const float* bias, float* y, uint64_t n) {
  const auto factor = S::set(r);
  if (weight != nullptr && bias == nullptr)  // nearly all: without a test a vector
    return each16<S>(0, n, [=](auto lanes, uint64_t i) {
      lanes.store(y + i, S::mul(S::mul(lanes.load(x + i), factor), lanes.load(weight + i)));
    });
  each16<S>(0, n, [=](auto lanes, uint64_t i) {
    auto v = S::mul(lanes.load(x + i), factor);
    if (weight != nullptr) v = S::mul(v, lanes.load(weight + i));
    if (bias != nullptr) v = S::add(v, lanes.load(bias + i));
    lanes.store(y + i, v);
  });
}

// rsq(ss / n + eps).
TW_INLINE inline float inverse_root_mean(float ss, uint64_t n, float eps) {
  return math::rsq(ss / static_cast<float>(n) + eps);
}

// V of a row with an added operand, into `to`.
template <class S>
TW_INLINE inline void add_row(const NormArgs& a, const float* x, const float* add, float* to) {
  const float r = a.pre ? inverse_root_mean(sum_of_squares<S>(add, a.cols), a.cols, a.pre_eps) : 1.0f;
  const auto factor = S::set(r);
  each16<S>(0, a.cols, [&](auto lanes, uint64_t i) {
    auto v = lanes.load(add + i);
    if (a.pre) v = S::mul(v, factor);
    if (a.pre && a.pre_weight != nullptr) v = S::mul(v, lanes.load(a.pre_weight + i));
    lanes.store(to + i, S::add(lanes.load(x + i), v));
  });
}

template <class S>
void norm(const NormArgs& a, Range range, std::byte* scratch) {
  for (uint64_t row = range.begin; row < range.end; ++row) {
    const float* v = a.x + row * a.x_pitch;
    float* out = store_place(a.out, row, 0, reinterpret_cast<float*>(scratch));
    if (a.add != nullptr) {
      float* to = a.sum != nullptr ? a.sum + row * a.cols : out;
      add_row<S>(a, v, a.add + row * a.cols, to);
      v = to;
    } else if (a.sum != nullptr && a.sum + row * a.cols != v) {
      float* to = a.sum + row * a.cols;
      each16<S>(0, a.cols, [&](auto lanes, uint64_t i) { lanes.store(to + i, lanes.load(v + i)); });
    }
    if (a.kind == graph::NormKind::Layer) {
      const auto mean = S::set(sum<S>(v, a.cols) / static_cast<float>(a.cols));
      each16<S>(0, a.cols, [&](auto lanes, uint64_t i) { lanes.store(out + i, S::sub(lanes.load(v + i), mean)); });
      v = out;
    }
    const float r = inverse_root_mean(sum_of_squares<S>(v, a.cols), a.cols, a.eps);
    scale_row<S>(v, r, a.weight, a.bias, out, a.cols);
    store_rest<S>(a.out, row, 0, out, a.cols);
    store_values<S>(a.quantized, row, 0, out, a.cols);
  }
}

template <class S>
void l2_norm(const L2NormArgs& a, Range range, std::byte*) {
  for (uint64_t row = range.begin; row < range.end; ++row) {
    const float* x = a.x + row * a.cols;
    scale_row<S>(x, math::rsq(sum_of_squares<S>(x, a.cols) + a.eps), nullptr, nullptr, a.y + row * a.cols, a.cols);
  }
}

template <class S>
TW_INLINE inline float row_max(const float* x, uint64_t n) {
  auto most = S::set(x[0]);
  each16<S>(0, n, [&](auto lanes, uint64_t i) {
    const auto v = lanes.load(x + i);
    most = S::max(i + 16 <= n ? v : S::leading(static_cast<int>(n - i), v, most), most);
  });
  return S::most(most);
}

template <class S>
void softmax(const SoftmaxArgs& a, Range range, std::byte*) {
  for (uint64_t row = range.begin; row < range.end; ++row) {
    const float* x = a.x + row * a.cols;
    float* y = a.y + row * a.cols;
    float m = row_max<S>(x, a.cols);
    const float sink = a.sinks != nullptr ? a.sinks[a.sink_a_row ? row : 0] : 0.0f;
    if (a.sinks != nullptr) m = math::max(sink, m);
    each16<S>(0, a.cols,
              [&](auto lanes, uint64_t i) { lanes.store(y + i, math::exp<S>(S::sub(lanes.load(x + i), S::set(m)))); });
    float z = sum<S>(y, a.cols);
    if (a.sinks != nullptr) z = z + math::exp(sink - m);
    each16<S>(0, a.cols, [&](auto lanes, uint64_t i) { lanes.store(y + i, S::div(lanes.load(y + i), S::set(z))); });
  }
}

}  // namespace tw::lane::cpu
