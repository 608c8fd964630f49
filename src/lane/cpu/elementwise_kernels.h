#pragma once

// Elementwise kernels (elementwise.h), as templates over the instruction set.

#include "base/math_contract.h"
#include "lane/cpu/elementwise.h"
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
    const uint64_t first = row * cols + begin;
    const float* left = a.a + row * cols;
    float block[kElementBlock];
    float* out = store_place(a.out, 0, first, block);
    const auto right = [&](auto lanes, uint64_t i) {
      auto b = a.scalar && a.row != 0 ? S::set(a.b[row]) : lanes.load(a.b + row * a.b_pitch + i);
      if (a.gated) with_activation<S>(a.act, [&b](auto f) { b = f(b); });
      return b;
    };
    with_arithmetic<S>(a.op, [&](auto f) {
      each16<S>(begin, end, [&](auto lanes, uint64_t i) {
        lanes.store(out + (i - begin), f(lanes.load(left + i), right(lanes, i)));
      });
    });
    store_rest<S>(a.out, 0, first, out, end - begin);
  }
}

template <class S>
void scale(const ScaleArgs& a, Range range, std::byte*) {
  each_element<S>(range, a.n,
                  [&](auto lanes, uint64_t i) { lanes.store(a.y + i, S::mul(lanes.load(a.x + i), S::set(a.factor))); });
}

template <class S>
void swiglu(const SwiGluArgs& a, Range range, std::byte*) {
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t begin = item * kElementBlock;
    const uint64_t count = least(a.n - begin, kElementBlock);
    float block[kElementBlock];
    float* out = store_place(a.out, 0, begin, block);
    each16<S>(0, count, [&](auto lanes, uint64_t i) {
      lanes.store(out + i, S::mul(math::silu<S>(lanes.load(a.g + begin + i)), lanes.load(a.u + begin + i)));
    });
    store_rest<S>(a.out, 0, begin, out, count);
  }
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

}  // namespace tw::lane::cpu
