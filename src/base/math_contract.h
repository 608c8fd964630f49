#pragma once

// The scalar functions of the numerics contract (docs/numerics.md): built from + - * / sqrt fma, comparisons and
// integer operations only, all correctly rounded, so that every instruction set and device gives the same bits. NaN
// payloads are outside the contract, being NaN is inside.
//
// Each function is one template over a set of operations `O`. Single below works on one float; the CPU lane's
// instruction-set structs (lane/cpu/simd*.h) work on 16. Everything is forced inline: a copy compiled for one
// instruction set must never be what the linker picks for another.

#include <cstdint>

#if defined(__CUDACC__)
#define TW_CONTRACT_INLINE __host__ __device__ __forceinline__
#else
#define TW_CONTRACT_INLINE [[gnu::always_inline]] inline
#endif

namespace tw::math {

// The operations on one value.
struct Single {
  using V = float;    // value
  using I = int32_t;  // integer of the same width, wrapping
  using M = bool;     // truth

  TW_CONTRACT_INLINE static V set(float x) { return x; }
  TW_CONTRACT_INLINE static V add(V a, V b) { return a + b; }
  TW_CONTRACT_INLINE static V sub(V a, V b) { return a - b; }
  TW_CONTRACT_INLINE static V mul(V a, V b) { return a * b; }
  TW_CONTRACT_INLINE static V div(V a, V b) { return a / b; }
  TW_CONTRACT_INLINE static V neg(V a) { return -a; }
  TW_CONTRACT_INLINE static V sqrt(V a) { return __builtin_sqrtf(a); }
  TW_CONTRACT_INLINE static V fma(V a, V b, V c) { return __builtin_fmaf(a, b, c); }
  TW_CONTRACT_INLINE static V max(V a, V b) { return a > b ? a : b; }
  TW_CONTRACT_INLINE static V min(V a, V b) { return a < b ? a : b; }
  TW_CONTRACT_INLINE static M greater(V a, V b) { return a > b; }
  TW_CONTRACT_INLINE static M less(V a, V b) { return a < b; }
  TW_CONTRACT_INLINE static V select(M m, V a, V b) { return m ? a : b; }
  TW_CONTRACT_INLINE static I bits(V a) { return __builtin_bit_cast(int32_t, a); }
  TW_CONTRACT_INLINE static V from_bits(I a) { return __builtin_bit_cast(float, a); }
  TW_CONTRACT_INLINE static V to_float(I a) { return static_cast<float>(a); }
  TW_CONTRACT_INLINE static I iset(int32_t a) { return a; }
  TW_CONTRACT_INLINE static I iadd(I a, I b) { return wrap(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }
  TW_CONTRACT_INLINE static I isub(I a, I b) { return wrap(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)); }
  TW_CONTRACT_INLINE static I iand(I a, I b) { return a & b; }
  template <int n>
  TW_CONTRACT_INLINE static I ishl(I a) {
    return wrap(static_cast<uint32_t>(a) << n);
  }
  template <int n>
  TW_CONTRACT_INLINE static I isar(I a) {
    return a >> n;
  }

 private:
  TW_CONTRACT_INLINE static I wrap(uint32_t a) { return static_cast<int32_t>(a); }
};

// e^x. Above 88.72284 infinity, below -103.97208 zero; the last multiplication rounds a denormal result once.
// Reduction x = n ln2 + r, |r| <= ln2 / 2, ln2 in two parts; polynomial of degree 5 with the coefficients of Cephes'
// expf. At most 1.013 ulp over every float.
template <class O>
TW_CONTRACT_INLINE typename O::V exp(typename O::V x) {
  using V = typename O::V;
  using I = typename O::I;
  const V shift = O::set(0x1.8p+23f);  // adding it leaves the nearest integer in the low bits
  const V t = O::fma(x, O::set(0x1.715476p+0f), shift);
  const V n = O::sub(t, shift);
  V r = O::fma(n, O::set(-0x1.62e4p-1f), x);
  r = O::fma(n, O::set(-0x1.7f7d1cp-20f), r);
  V p = O::set(0x1.a0d2cep-13f);
  p = O::fma(p, r, O::set(0x1.6e879cp-10f));
  p = O::fma(p, r, O::set(0x1.111210p-7f));
  p = O::fma(p, r, O::set(0x1.555382p-5f));
  p = O::fma(p, r, O::set(0x1.555554p-3f));
  p = O::fma(p, r, O::set(0x1p-1f));
  const V y = O::add(O::fma(p, O::mul(r, r), r), O::set(1.0f));
  const I whole = O::isub(O::bits(t), O::iset(0x4b400000));
  const I half = O::template isar<1>(whole);
  const V scale1 = O::from_bits(O::template ishl<23>(O::iadd(half, O::iset(127))));
  const V scale2 = O::from_bits(O::template ishl<23>(O::iadd(O::isub(whole, half), O::iset(127))));
  const V result = O::mul(O::mul(y, scale1), scale2);
  const V infinity = O::set(__builtin_inff());
  return O::select(O::greater(x, O::set(0x1.62e43p+6f)), infinity,
                   O::select(O::less(x, O::set(-0x1.9fe36ap+6f)), O::set(0.0f), result));
}

// Natural logarithm of a positive normal x; any other x is outside its domain (NaN or a meaningless number).
// x = m 2^k, m in [sqrt(1/2), sqrt(2)), s = f / (2 + f), f = m - 1, even polynomial in s (fdlibm's float form), ln2 in
// two parts. At most 0.83 ulp.
template <class O>
TW_CONTRACT_INLINE typename O::V ln(typename O::V x) {
  using V = typename O::V;
  using I = typename O::I;
  const I shifted = O::iadd(O::bits(x), O::iset(0x3f800000 - 0x3f3504f3));
  const V k = O::to_float(O::isub(O::template isar<23>(shifted), O::iset(127)));
  const V m = O::from_bits(O::iadd(O::iand(shifted, O::iset(0x007fffff)), O::iset(0x3f3504f3)));
  const V f = O::sub(m, O::set(1.0f));
  const V s = O::div(f, O::add(O::set(2.0f), f));
  const V z = O::mul(s, s);
  V p = O::set(0x1.f13c4cp-3f);
  p = O::fma(p, z, O::set(0x1.23d3dcp-2f));
  p = O::fma(p, z, O::set(0x1.999c26p-2f));
  p = O::fma(p, z, O::set(0x1.555554p-1f));
  const V half_square = O::mul(O::mul(O::set(0.5f), f), f);
  V y = O::mul(s, O::fma(p, z, half_square));
  y = O::fma(k, O::set(0x1.2fefa2p-17f), y);
  y = O::add(O::sub(y, half_square), f);
  return O::fma(k, O::set(0x1.62e3p-1f), y);
}

// 1 / sqrt(v), two roundings.
template <class O>
TW_CONTRACT_INLINE typename O::V rsq(typename O::V v) {
  return O::div(O::set(1.0f), O::sqrt(v));
}

// ln(1 + e^u); u itself above 20.
template <class O>
TW_CONTRACT_INLINE typename O::V softplus(typename O::V u) {
  using V = typename O::V;
  const V e = exp<O>(u);
  const V y = O::add(O::set(1.0f), e);
  const V c = O::sub(e, O::sub(y, O::set(1.0f)));
  return O::select(O::greater(u, O::set(20.0f)), u, O::add(ln<O>(y), O::div(c, y)));
}

template <class O>
TW_CONTRACT_INLINE typename O::V sigmoid(typename O::V x) {
  return O::div(O::set(1.0f), O::add(O::set(1.0f), exp<O>(O::neg(x))));
}

template <class O>
TW_CONTRACT_INLINE typename O::V silu(typename O::V x) {
  return O::div(x, O::add(O::set(1.0f), exp<O>(O::neg(x))));
}

// The tanh form: x / (1 + e^(-2z)), z = sqrt(2/pi) (x + 0.044715 x^3).
template <class O>
TW_CONTRACT_INLINE typename O::V gelu(typename O::V x) {
  using V = typename O::V;
  const V z = O::mul(O::set(0x1.988454p-1f), O::fma(O::mul(O::mul(O::set(0x1.6e4e26p-5f), x), x), x, x));
  return O::div(x, O::add(O::set(1.0f), exp<O>(O::mul(O::set(-2.0f), z))));
}

// c tanh(x / c), c > 0. Error in units of c.
template <class O>
TW_CONTRACT_INLINE typename O::V softcap(typename O::V x, typename O::V c) {
  const auto e = exp<O>(O::div(O::mul(O::set(-2.0f), x), c));
  return O::fma(O::mul(O::set(2.0f), c), O::div(O::set(1.0f), O::add(O::set(1.0f), e)), O::neg(c));
}

template <class O>
TW_CONTRACT_INLINE typename O::V tanh(typename O::V x) {
  return softcap<O>(x, O::set(1.0f));
}

template <class O>
TW_CONTRACT_INLINE typename O::V relu(typename O::V x) {
  return O::max(x, O::set(0.0f));
}

// The forget gate e^(rate * softplus(x + bias)).
template <class O>
TW_CONTRACT_INLINE typename O::V decay(typename O::V x, typename O::V bias, typename O::V rate) {
  return exp<O>(O::mul(rate, softplus<O>(O::add(x, bias))));
}

// The same functions of one float, by plain names.
TW_CONTRACT_INLINE float exp(float x) { return exp<Single>(x); }
TW_CONTRACT_INLINE float ln(float x) { return ln<Single>(x); }
TW_CONTRACT_INLINE float rsq(float x) { return rsq<Single>(x); }
TW_CONTRACT_INLINE float softplus(float x) { return softplus<Single>(x); }
TW_CONTRACT_INLINE float sigmoid(float x) { return sigmoid<Single>(x); }
TW_CONTRACT_INLINE float silu(float x) { return silu<Single>(x); }
TW_CONTRACT_INLINE float gelu(float x) { return gelu<Single>(x); }
TW_CONTRACT_INLINE float softcap(float x, float c) { return softcap<Single>(x, c); }
TW_CONTRACT_INLINE float tanh(float x) { return tanh<Single>(x); }
TW_CONTRACT_INLINE float relu(float x) { return relu<Single>(x); }
TW_CONTRACT_INLINE float decay(float x, float bias, float rate) { return decay<Single>(x, bias, rate); }
TW_CONTRACT_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TW_CONTRACT_INLINE float max(float a, float b) { return a > b ? a : b; }

}  // namespace tw::math
