#pragma once

// Elementwise kernels and the quantizer (elementwise.h, quant.h), as templates over the instruction set.

#include "base/math_contract.h"
#include "lane/cpu/elementwise.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/reduce.h"

namespace tw::lane::cpu {

// Calls body(f), f a function of one vector that computes the activation.
template <class S, class Body>
TW_INLINE inline void with_activation(graph::ActivationKind act, Body body) {
  using V = typename S::V;
  using enum graph::ActivationKind;
  switch (act) {
    case Silu: return body([](V x) { return math::silu<S>(x); });
    case Sigmoid: return body([](V x) { return math::sigmoid<S>(x); });
    case GeluTanh: return body([](V x) { return math::gelu<S>(x); });
    case Relu: return body([](V x) { return math::relu<S>(x); });
    case Softplus: return body([](V x) { return math::softplus<S>(x); });
    case Tanh: return body([](V x) { return math::tanh<S>(x); });
    case Exp: return body([](V x) { return math::exp<S>(x); });
  }
}

// Calls body(f), f the operation on two vectors.
template <class S, class Body>
TW_INLINE inline void with_arithmetic(graph::Arithmetic op, Body body) {
  using V = typename S::V;
  using enum graph::Arithmetic;
  switch (op) {
    case Add: return body([](V a, V b) { return S::add(a, b); });
    case Sub: return body([](V a, V b) { return S::sub(a, b); });
    case Mul: return body([](V a, V b) { return S::mul(a, b); });
    case Div: return body([](V a, V b) { return S::div(a, b); });
    case Min: return body([](V a, V b) { return S::min(a, b); });
    case Max: return body([](V a, V b) { return S::max(a, b); });
  }
}

// body(lanes, i) over the elements of the items of an array of n.
template <class S, class Body>
TW_INLINE inline void each_element(Range range, uint64_t n, Body body) {
  each16<S>(range.begin * kElementBlock, least(n, range.end * kElementBlock), body);
}

template <class S>
void binary(const BinaryArgs& a, Range range, std::byte*) {
  const uint64_t cols = a.row == 0 ? a.n : a.row;
  const uint64_t blocks = element_blocks(cols);
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t row = item / blocks;
    const uint64_t begin = item % blocks * kElementBlock;
    const uint64_t end = least(cols, begin + kElementBlock);
    const float* left = a.a + row * cols;
    float* out = a.out + row * cols;
    const auto right = [&](auto lanes, uint64_t i) {
      auto b = a.scalar && a.row != 0 ? S::set(a.b[row]) : lanes.load(a.b + i);
      if (a.gated) with_activation<S>(a.act, [&b](auto f) { b = f(b); });
      return b;
    };
    with_arithmetic<S>(a.op, [&](auto f) {
      each16<S>(begin, end,
                [&](auto lanes, uint64_t i) { lanes.store(out + i, f(lanes.load(left + i), right(lanes, i))); });
    });
  }
}

template <class S>
void scale(const ScaleArgs& a, Range range, std::byte*) {
  each_element<S>(range, a.n,
                  [&](auto lanes, uint64_t i) { lanes.store(a.y + i, S::mul(lanes.load(a.x + i), S::set(a.factor))); });
}

template <class S>
void swiglu(const SwiGluArgs& a, Range range, std::byte*) {
  each_element<S>(range, a.n, [&](auto lanes, uint64_t i) {
    lanes.store(a.out + i, S::mul(math::silu<S>(lanes.load(a.g + i)), lanes.load(a.u + i)));
  });
}

template <class S>
void unary(const UnaryArgs& a, Range range, std::byte*) {
  if (a.cap > 0) {
    each_element<S>(range, a.n, [&](auto lanes, uint64_t i) {
      lanes.store(a.y + i, math::softcap<S>(lanes.load(a.x + i), S::set(a.cap)));
    });
    return;
  }
  with_activation<S>(a.act, [&](auto f) {
    each_element<S>(range, a.n, [&](auto lanes, uint64_t i) { lanes.store(a.y + i, f(lanes.load(a.x + i))); });
  });
}

template <class S>
void gates(const GatesArgs& a, Range range, std::byte*) {
  for (uint64_t row = range.begin; row < range.end; ++row) {
    const uint64_t at = row * a.heads;
    each16<S>(0, a.heads, [&](auto lanes, uint64_t h) {
      lanes.store(a.decay + at + h,
                  math::decay<S>(lanes.load(a.x + at + h), lanes.load(a.bias + h), lanes.load(a.rate + h)));
      if (a.beta != nullptr) lanes.store(a.beta + at + h, math::sigmoid<S>(lanes.load(a.b + at + h)));
    });
  }
}

// The largest magnitude of a block by its bits: order free, and a NaN is larger than infinity.
template <class S>
TW_INLINE inline float block_max(typename S::V low, typename S::V high) {
  int32_t lane[16];
  S::istore(lane, S::imax(S::bits(S::abs(low)), S::bits(S::abs(high))));
  int32_t best = lane[0];
  for (int i = 1; i < 16; ++i) best = lane[i] > best ? lane[i] : best;
  return __builtin_bit_cast(float, best);
}

template <class S>
TW_INLINE inline int32_t lanes_sum(typename S::I v) {
  int32_t lane[16];
  S::istore(lane, v);
  uint32_t total = 0;
  for (int i = 0; i < 16; ++i) total += static_cast<uint32_t>(lane[i]);
  return static_cast<int32_t>(total);
}

// One half of a block: 16 values v = rint(x * factor), split into words.
template <class S>
struct QuantHalf {
  typename S::I high, low;
};
template <class S>
TW_INLINE inline QuantHalf<S> quantize_half(const QuantView& to, uint64_t at, typename S::V x, float factor,
                                            int words) {
  const auto v = S::to_int(S::mul(x, S::set(factor)));
  if (words == 1) {
    S::store_i8(to.high + at, v);
    return {v, v};
  }
  const auto high = S::template isar<8>(S::iadd(v, S::iset(128)));
  const auto low = S::isub(v, S::template ishl<8>(high));
  S::store_i8(to.high + at, high);
  S::store_i8(to.low + at, low);
  S::store_i16(to.wide + at, v);
  return {high, low};
}

template <class S>
void quant(const QuantArgs& a, Range range, std::byte*) {
  const uint64_t blocks = quant_padded(a.cols) / kQuantBlock;
  const float steps = a.words == 1 ? 127.0f : 32512.0f;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t begin = item % blocks * kQuantBlock;
    const float* x = a.x + item / blocks * a.pitch + begin;
    const uint64_t count = least(kQuantBlock, a.cols - begin);
    const auto low = count >= 16 ? S::load(x) : S::load(x, static_cast<int>(count));
    auto high = S::zero();
    if (count == 32) high = S::load(x + 16);
    if (count > 16 && count < 32) high = S::load(x + 16, static_cast<int>(count - 16));
    const float largest = block_max<S>(low, high);
    const bool empty = largest < 0x1p-100f;
    const float factor = empty ? 0.0f : steps / largest;
    a.to.scale[item] = empty ? 0.0f : largest / steps;
    const auto first = quantize_half<S>(a.to, item * kQuantBlock, low, factor, a.words);
    const auto second = quantize_half<S>(a.to, item * kQuantBlock + 16, high, factor, a.words);
    a.to.sum_high[item] = lanes_sum<S>(S::iadd(first.high, second.high));
    if (a.words == 2) a.to.sum_low[item] = lanes_sum<S>(S::iadd(first.low, second.low));
  }
}

}  // namespace tw::lane::cpu
