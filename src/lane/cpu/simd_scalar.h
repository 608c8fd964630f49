#pragma once

// The wrapper in plain C++: the portable path and the definition of what the others compute.

#include "base/half.h"
#include "base/math_contract.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// The compiler lowers these vectors to what the baseline has. What it would unroll into long code is kept out of line.
struct Scalar {
  using Floats [[gnu::vector_size(64)]] = float;
  using Words [[gnu::vector_size(64)]] = int32_t;
  using Unsigned [[gnu::vector_size(64)]] = uint32_t;
  using Bytes [[gnu::vector_size(64)]] = uint8_t;
  struct V {
    Floats v;
  };
  struct I {
    Words v;
  };
  struct M {
    Words v;  // -1 or 0 a lane
  };
  struct B {
    Bytes v;
  };
  static constexpr int kTileVectors = 6;
  static constexpr int kProductRows = 1;
  static constexpr int kBlockRows = 1;
  static constexpr bool kPairSums = false;
  static constexpr bool kSignedByOffset = false;

  // ---- floats ----
  TW_SIMD V zero() { return {Floats{}}; }
  TW_SIMD V set(float x) { return {x - Floats{}}; }
  TW_SIMD V load(const float* p) {
    V r;
    __builtin_memcpy(&r, p, 64);
    return r;
  }
  TW_SIMD V load(const float* p, int n) {
    V r = zero();
    __builtin_memcpy(&r, p, 4 * static_cast<size_t>(n));
    return r;
  }
  TW_SIMD void store(float* p, V a) { __builtin_memcpy(p, &a, 64); }
  TW_SIMD void store(float* p, V a, int n) { __builtin_memcpy(p, &a, 4 * static_cast<size_t>(n)); }
  TW_SIMD void transpose(const float* from, float* to) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j) to[16 * i + j] = from[16 * j + i];
  }
  TW_SIMD V add(V a, V b) { return {a.v + b.v}; }
  TW_SIMD V sub(V a, V b) { return {a.v - b.v}; }
  TW_SIMD V mul(V a, V b) { return {a.v * b.v}; }
  TW_SIMD V div(V a, V b) { return {a.v / b.v}; }
  TW_SIMD V sqrt(V a) {
    out_of_line_sqrt(a);
    return a;
  }
  TW_SIMD V fma(V a, V b, V c) {
    out_of_line_fma(a, b, c);
    return c;
  }
  TW_SIMD V neg(V a) { return {-a.v}; }
  TW_SIMD V abs(V a) { return from_bits(iand(bits(a), iset(INT32_MAX))); }
  TW_SIMD V max(V a, V b) { return {a.v > b.v ? a.v : b.v}; }
  TW_SIMD V min(V a, V b) { return {a.v < b.v ? a.v : b.v}; }
  TW_SIMD M greater(V a, V b) { return {a.v > b.v}; }
  TW_SIMD M less(V a, V b) { return {a.v < b.v}; }
  TW_SIMD V select(M m, V a, V b) { return {m.v != 0 ? a.v : b.v}; }
  TW_SIMD float first(V a) { return a.v[0]; }
  TW_SIMD float tree(V a) {
    float x[16];
    store(x, a);
    for (int h = 8; h > 0; h /= 2)
      for (int i = 0; i < h; ++i) x[i] += x[i + h];
    return x[0];
  }
  TW_SIMD float most(V a) {
    float best = a.v[0];
    for (int i = 1; i < 16; ++i) best = a.v[i] > best ? a.v[i] : best;
    return best;
  }
  TW_SIMD V leading(int n, V a, V b) {
    for (int i = n; i < 16; ++i) a.v[i] = b.v[i];
    return a;
  }
  TW_SIMD float most_bits(V a) {
    const I lanes = bits(a);
    int32_t best = lanes.v[0];
    for (int i = 1; i < 16; ++i) best = lanes.v[i] > best ? lanes.v[i] : best;
    return __builtin_bit_cast(float, best);
  }

  // ---- 16-bit storage ----
  TW_SIMD V load_f16(const uint16_t* p) { return load_f16(p, 16); }
  TW_SIMD V load_f16(const uint16_t* p, int n) {
    V r = zero();
    for (int i = 0; i < n; ++i) r.v[i] = f16_to_f32(p[i]);
    return r;
  }
  TW_SIMD void store_f16(uint16_t* p, V a) { store_f16(p, a, 16); }
  TW_SIMD void store_f16(uint16_t* p, V a, int n) {
    for (int i = 0; i < n; ++i) p[i] = f32_to_f16(a.v[i]);
  }
  TW_SIMD V load_bf16(const uint16_t* p) { return load_bf16(p, 16); }
  TW_SIMD V load_bf16(const uint16_t* p, int n) {
    V r = zero();
    for (int i = 0; i < n; ++i) r.v[i] = bf16_to_f32(p[i]);
    return r;
  }
  TW_SIMD void store_bf16(uint16_t* p, V a) { store_bf16(p, a, 16); }
  TW_SIMD void store_bf16(uint16_t* p, V a, int n) {
    for (int i = 0; i < n; ++i) p[i] = f32_to_bf16(a.v[i]);
  }

  // ---- integers ----
  TW_SIMD I iset(int32_t x) { return {x - Words{}}; }
  TW_SIMD I izero() { return {Words{}}; }
  TW_SIMD I iload(const int32_t* p) {
    I r;
    __builtin_memcpy(&r, p, 64);
    return r;
  }
  TW_SIMD void istore(int32_t* p, I a) { __builtin_memcpy(p, &a, 64); }
  TW_SIMD I iadd(I a, I b) { return wrap({word(a).v + word(b).v}); }
  TW_SIMD I isub(I a, I b) { return wrap({word(a).v - word(b).v}); }
  TW_SIMD I imul(I a, I b) { return wrap({word(a).v * word(b).v}); }
  TW_SIMD I iand(I a, I b) { return {a.v & b.v}; }
  TW_SIMD I ior(I a, I b) { return {a.v | b.v}; }
  TW_SIMD I ixor(I a, I b) { return {a.v ^ b.v}; }
  TW_SIMD I imax(I a, I b) { return {a.v > b.v ? a.v : b.v}; }
  template <int n>
  TW_SIMD I ishl(I a) {
    return wrap({word(a).v << n});
  }
  template <int n>
  TW_SIMD I ishr(I a) {
    return wrap({word(a).v >> n});
  }
  template <int n>
  TW_SIMD I isar(I a) {
    return {a.v >> n};
  }
  TW_SIMD M igreater(I a, I b) { return {a.v > b.v}; }
  TW_SIMD I iselect(M m, I a, I b) { return {m.v != 0 ? a.v : b.v}; }
  TW_SIMD int32_t isum(I a) {
    uint32_t total = 0;
    for (int i = 0; i < 16; ++i) total += word(a).v[i];
    return static_cast<int32_t>(total);
  }
  TW_SIMD V to_float(I a) { return {__builtin_convertvector(a.v, Floats)}; }
  TW_SIMD I to_int(V a) {
    I r;
    for (int i = 0; i < 16; ++i) r.v[i] = nearest(a.v[i]);
    return r;
  }
  TW_SIMD I bits(V a) { return __builtin_bit_cast(I, a); }
  TW_SIMD V from_bits(I a) { return __builtin_bit_cast(V, a); }
  TW_SIMD I load_i8(const int8_t* p) { return extend(p); }
  TW_SIMD I load_u8(const uint8_t* p) { return extend(p); }
  TW_SIMD I load_i16(const int16_t* p) { return extend(p); }
  TW_SIMD void store_i8(int8_t* p, I a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
  }
  TW_SIMD void store_i16(int16_t* p, I a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int16_t>(a.v[i]);
  }

  // ---- bytes ----
  TW_SIMD B bload(const void* p) {
    B r;
    __builtin_memcpy(&r, p, 64);
    return r;
  }
  TW_SIMD B bset4(int32_t x) { return b_of(iset(x)); }
  TW_SIMD B bset1(uint8_t x) { return {x - Bytes{}}; }
  TW_SIMD I i_of(B a) { return __builtin_bit_cast(I, a); }
  TW_SIMD B b_of(I a) { return __builtin_bit_cast(B, a); }
  TW_SIMD B band(B a, B b) { return {a.v & b.v}; }
  TW_SIMD B bor(B a, B b) { return {a.v | b.v}; }
  TW_SIMD B bxor(B a, B b) { return {a.v ^ b.v}; }
  TW_SIMD B badd(B a, B b) { return {a.v + b.v}; }
  TW_SIMD B bsub(B a, B b) { return {a.v - b.v}; }
  template <int n>
  TW_SIMD B bshr16(B a) {
    return __builtin_bit_cast(B, __builtin_bit_cast(Halves, a.v) >> n);
  }
  template <int n>
  TW_SIMD B bshl16(B a) {
    return __builtin_bit_cast(B, __builtin_bit_cast(Halves, a.v) << n);
  }
  TW_SIMD B blookup(const uint8_t* table, B index) {
    B r;
    for (int i = 0; i < 64; ++i) r.v[i] = table[index.v[i] & 15];
    return r;
  }
  TW_SIMD B bfrom(I lo, I hi) {
    int16_t r[32];
    store_i16(r, lo);
    store_i16(r + 16, hi);
    return bload(r);
  }

  // ---- dots ----
  TW_SIMD I dot4(I acc, B u, B s) {
    out_of_line_dot4<uint8_t>(acc, u, s);
    return acc;
  }
  TW_SIMD I dot4_small(I acc, B u, B s) { return dot4(acc, u, s); }
  TW_SIMD I dot4_signed(I acc, B a, B b) {
    out_of_line_dot4<int8_t>(acc, a, b);
    return acc;
  }
  TW_SIMD I dot2(I acc, B a, B b) {
    out_of_line_dot2(acc, a, b);
    return acc;
  }
  TW_SIMD B bpairs(B u, B s) {
    const auto product = [&](int i) { return u.v[i] * static_cast<int8_t>(s.v[i]); };
    B r;
    for (int i = 0; i < 32; ++i) {
      const int32_t sum = product(2 * i) + product(2 * i + 1);
      put16(r, i, sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum);
    }
    return r;
  }
  TW_SIMD B badd16(B a, B b) {
    B r;
    for (int i = 0; i < 32; ++i) put16(r, i, get16(a, i) + get16(b, i));
    return r;
  }
  TW_SIMD B bmul16(B a, B b) {
    B r;
    for (int i = 0; i < 32; ++i) put16(r, i, get16(a, i) * get16(b, i));
    return r;
  }
  TW_SIMD void pin(I&) {}
  TW_SIMD I idot_pairs(I acc, B p) {
    for (int i = 0; i < 32; ++i) acc.v[i / 2] += get16(p, i);
    return acc;
  }
  TW_SIMD B bwiden01(B u) { return widen(u, 0); }
  TW_SIMD B bwiden23(B u) { return widen(u, 2); }
  TW_SIMD B widen(B u, int first) {
    B r;
    for (int i = 0; i < 32; ++i) put16(r, i, u.v[i / 2 * 4 + first + i % 2]);
    return r;
  }
  TW_SIMD int32_t get16(const B& a, int i) { return static_cast<int16_t>(a.v[2 * i] | (a.v[2 * i + 1] << 8)); }
  TW_SIMD void put16(B& a, int i, int32_t x) {
    a.v[2 * i] = static_cast<uint8_t>(x);
    a.v[2 * i + 1] = static_cast<uint8_t>(x >> 8);
  }

 private:
  struct U {
    Unsigned v;
  };
  using Halves [[gnu::vector_size(64)]] = uint16_t;

  TW_SIMD U word(I a) { return __builtin_bit_cast(U, a); }
  TW_SIMD I wrap(U a) { return __builtin_bit_cast(I, a); }
  template <class T>
  TW_SIMD I extend(const T* p) {
    I r;
    for (int i = 0; i < 16; ++i) r.v[i] = p[i];
    return r;
  }
  TW_SIMD int32_t nearest(float x) {
    if (!(__builtin_fabsf(x) < 0x1p31f)) return INT32_MIN;
    const float shift = __builtin_copysignf(0x1p23f, x);  // adding it rounds to a whole number, nearest even
    return static_cast<int32_t>(__builtin_fabsf(x) < 0x1p23f ? (x + shift) - shift : x);
  }
  [[gnu::noinline]] static void out_of_line_sqrt(V& a) {
    for (int i = 0; i < 16; ++i) a.v[i] = __builtin_sqrtf(a.v[i]);
  }
  [[gnu::noinline]] static void out_of_line_fma(const V& a, const V& b, V& c) {
    for (int i = 0; i < 16; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  }
  template <class First>
  [[gnu::noinline]] static void out_of_line_dot4(I& acc, const B& a, const B& b) {
    for (int i = 0; i < 64; ++i) acc.v[i / 4] += static_cast<First>(a.v[i]) * static_cast<int8_t>(b.v[i]);
  }
  [[gnu::noinline]] static void out_of_line_dot2(I& acc, const B& a, const B& b) {
    int16_t x[32], y[32];
    __builtin_memcpy(x, &a, 64);
    __builtin_memcpy(y, &b, 64);
    for (int i = 0; i < 32; ++i) acc.v[i / 2] += x[i] * y[i];
  }
};

}  // namespace tw::lane::cpu
