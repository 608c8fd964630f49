#pragma once

// The wrapper in plain C++: the portable path and the definition of what the others compute.

#include "base/half.h"
#include "base/math_contract.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

struct Scalar {
  struct V {
    float v[16];
  };
  struct I {
    int32_t v[16];
  };
  struct M {
    bool v[16];
  };
  struct B {
    uint8_t v[64];
  };
  static constexpr int kQueryTile = 4;
  static constexpr int kProductRows = 1;
  static constexpr bool kPairSums = false;
  static constexpr bool kSignedByOffset = false;

  // ---- floats ----
  TW_SIMD V set(float x) {
    return each([=](int) { return x; });
  }
  TW_SIMD V zero() { return set(0.0f); }
  TW_SIMD V load(const float* p) {
    return each([=](int i) { return p[i]; });
  }
  TW_SIMD V load(const float* p, int n) {
    return each([=](int i) { return i < n ? p[i] : 0.0f; });
  }
  TW_SIMD void store(float* p, V a) { store(p, a, 16); }
  TW_SIMD void store(float* p, V a, int n) {
    for (int i = 0; i < n; ++i) p[i] = a.v[i];
  }
  TW_SIMD V add(V a, V b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  TW_SIMD V sub(V a, V b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  TW_SIMD V mul(V a, V b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  TW_SIMD V div(V a, V b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  TW_SIMD V sqrt(V a) {
    return each([&](int i) { return __builtin_sqrtf(a.v[i]); });
  }
  TW_SIMD V fma(V a, V b, V c) {
    return each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
  }
  TW_SIMD V neg(V a) {
    return each([&](int i) { return -a.v[i]; });
  }
  TW_SIMD V abs(V a) {
    return each([&](int i) { return __builtin_fabsf(a.v[i]); });
  }
  TW_SIMD V max(V a, V b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  TW_SIMD V min(V a, V b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  TW_SIMD M greater(V a, V b) {
    return truths([&](int i) { return a.v[i] > b.v[i]; });
  }
  TW_SIMD M less(V a, V b) { return greater(b, a); }
  TW_SIMD V select(M m, V a, V b) {
    return each([&](int i) { return m.v[i] ? a.v[i] : b.v[i]; });
  }
  TW_SIMD float first(V a) { return a.v[0]; }
  TW_SIMD float tree(V a) {
    for (int h = 8; h > 0; h /= 2)
      for (int i = 0; i < h; ++i) a.v[i] += a.v[i + h];
    return a.v[0];
  }

  // ---- 16-bit storage ----
  TW_SIMD V load_f16(const uint16_t* p) { return load_f16(p, 16); }
  TW_SIMD V load_f16(const uint16_t* p, int n) {
    return each([=](int i) { return i < n ? f16_to_f32(p[i]) : 0.0f; });
  }
  TW_SIMD void store_f16(uint16_t* p, V a) { store_f16(p, a, 16); }
  TW_SIMD void store_f16(uint16_t* p, V a, int n) {
    for (int i = 0; i < n; ++i) p[i] = f32_to_f16(a.v[i]);
  }
  TW_SIMD V load_bf16(const uint16_t* p) { return load_bf16(p, 16); }
  TW_SIMD V load_bf16(const uint16_t* p, int n) {
    return each([=](int i) { return i < n ? bf16_to_f32(p[i]) : 0.0f; });
  }
  TW_SIMD void store_bf16(uint16_t* p, V a) { store_bf16(p, a, 16); }
  TW_SIMD void store_bf16(uint16_t* p, V a, int n) {
    for (int i = 0; i < n; ++i) p[i] = f32_to_bf16(a.v[i]);
  }

  // ---- integers ----
  TW_SIMD I iset(int32_t x) {
    return ieach([=](int) { return x; });
  }
  TW_SIMD I izero() { return iset(0); }
  TW_SIMD I iload(const int32_t* p) {
    return ieach([=](int i) { return p[i]; });
  }
  TW_SIMD void istore(int32_t* p, I a) {
    for (int i = 0; i < 16; ++i) p[i] = a.v[i];
  }
  TW_SIMD I iadd(I a, I b) {
    return ieach([&](int i) { return wrap(word(a.v[i]) + word(b.v[i])); });
  }
  TW_SIMD I isub(I a, I b) {
    return ieach([&](int i) { return wrap(word(a.v[i]) - word(b.v[i])); });
  }
  TW_SIMD I imul(I a, I b) {
    return ieach([&](int i) { return wrap(word(a.v[i]) * word(b.v[i])); });
  }
  TW_SIMD I iand(I a, I b) {
    return ieach([&](int i) { return a.v[i] & b.v[i]; });
  }
  TW_SIMD I ior(I a, I b) {
    return ieach([&](int i) { return a.v[i] | b.v[i]; });
  }
  TW_SIMD I ixor(I a, I b) {
    return ieach([&](int i) { return a.v[i] ^ b.v[i]; });
  }
  TW_SIMD I imax(I a, I b) {
    return ieach([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  template <int n>
  TW_SIMD I ishl(I a) {
    return ieach([&](int i) { return wrap(word(a.v[i]) << n); });
  }
  template <int n>
  TW_SIMD I ishr(I a) {
    return ieach([&](int i) { return wrap(word(a.v[i]) >> n); });
  }
  template <int n>
  TW_SIMD I isar(I a) {
    return ieach([&](int i) { return a.v[i] >> n; });
  }
  TW_SIMD M igreater(I a, I b) {
    return truths([&](int i) { return a.v[i] > b.v[i]; });
  }
  TW_SIMD I iselect(M m, I a, I b) {
    return ieach([&](int i) { return m.v[i] ? a.v[i] : b.v[i]; });
  }
  TW_SIMD V to_float(I a) {
    return each([&](int i) { return static_cast<float>(a.v[i]); });
  }
  TW_SIMD I to_int(V a) {
    return ieach([&](int i) { return nearest(a.v[i]); });
  }
  TW_SIMD I bits(V a) {
    return ieach([&](int i) { return __builtin_bit_cast(int32_t, a.v[i]); });
  }
  TW_SIMD V from_bits(I a) {
    return each([&](int i) { return __builtin_bit_cast(float, a.v[i]); });
  }
  TW_SIMD I load_i8(const int8_t* p) {
    return ieach([=](int i) { return p[i]; });
  }
  TW_SIMD I load_u8(const uint8_t* p) {
    return ieach([=](int i) { return p[i]; });
  }
  TW_SIMD I load_i16(const int16_t* p) {
    return ieach([=](int i) { return p[i]; });
  }
  TW_SIMD void store_i8(int8_t* p, I a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
  }
  TW_SIMD void store_i16(int16_t* p, I a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int16_t>(a.v[i]);
  }

  // ---- bytes ----
  TW_SIMD B bload(const void* p) {
    B r;
    __builtin_memcpy(r.v, p, 64);
    return r;
  }
  TW_SIMD B bset4(int32_t x) { return b_of(iset(x)); }
  TW_SIMD B bset1(uint8_t x) {
    return beach([=](int) { return x; });
  }
  TW_SIMD I i_of(B a) { return __builtin_bit_cast(I, a); }
  TW_SIMD B b_of(I a) { return __builtin_bit_cast(B, a); }
  TW_SIMD B band(B a, B b) {
    return beach([&](int i) { return a.v[i] & b.v[i]; });
  }
  TW_SIMD B bor(B a, B b) {
    return beach([&](int i) { return a.v[i] | b.v[i]; });
  }
  TW_SIMD B bxor(B a, B b) {
    return beach([&](int i) { return a.v[i] ^ b.v[i]; });
  }
  TW_SIMD B badd(B a, B b) {
    return beach([&](int i) { return a.v[i] + b.v[i]; });
  }
  TW_SIMD B bsub(B a, B b) {
    return beach([&](int i) { return a.v[i] - b.v[i]; });
  }
  template <int n>
  TW_SIMD B bshr16(B a) {
    return heach([&](int i) { return (a.v[2 * i] | (a.v[2 * i + 1] << 8)) >> n; });
  }
  template <int n>
  TW_SIMD B bshl16(B a) {
    return heach([&](int i) { return (a.v[2 * i] | (a.v[2 * i + 1] << 8)) << n; });
  }
  TW_SIMD B blookup(const uint8_t* table, B index) {
    return beach([&](int i) { return table[index.v[i] & 15]; });
  }
  TW_SIMD B bfrom(I lo, I hi) {
    return heach([&](int i) { return i < 16 ? lo.v[i] : hi.v[i - 16]; });
  }

  // ---- dots ----
  TW_SIMD I dot4(I acc, B u, B s) {
    for (int i = 0; i < 64; ++i) acc.v[i / 4] += u.v[i] * static_cast<int8_t>(s.v[i]);
    return acc;
  }
  TW_SIMD I dot4_small(I acc, B u, B s) { return dot4(acc, u, s); }
  TW_SIMD I dot4_signed(I acc, B a, B b) {
    for (int i = 0; i < 64; ++i) acc.v[i / 4] += static_cast<int8_t>(a.v[i]) * static_cast<int8_t>(b.v[i]);
    return acc;
  }
  TW_SIMD I dot2(I acc, B a, B b) {
    for (int i = 0; i < 32; ++i) acc.v[i / 2] += half(a, i) * half(b, i);
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
  TW_SIMD uint32_t word(int32_t a) { return static_cast<uint32_t>(a); }
  TW_SIMD int32_t wrap(uint32_t a) { return static_cast<int32_t>(a); }
  TW_SIMD int32_t half(const B& a, int i) { return static_cast<int16_t>(a.v[2 * i] | (a.v[2 * i + 1] << 8)); }
  TW_SIMD int32_t nearest(float x) {
    if (!(__builtin_fabsf(x) < 0x1p31f)) return INT32_MIN;
    const float shift = __builtin_copysignf(0x1p23f, x);  // adding it rounds to a whole number, nearest even
    return static_cast<int32_t>(__builtin_fabsf(x) < 0x1p23f ? (x + shift) - shift : x);
  }
  template <class F>
  TW_SIMD V each(F f) {
    V r;
    for (int i = 0; i < 16; ++i) r.v[i] = f(i);
    return r;
  }
  template <class F>
  TW_SIMD I ieach(F f) {
    I r;
    for (int i = 0; i < 16; ++i) r.v[i] = f(i);
    return r;
  }
  template <class F>
  TW_SIMD M truths(F f) {
    M r;
    for (int i = 0; i < 16; ++i) r.v[i] = f(i);
    return r;
  }
  template <class F>
  TW_SIMD B beach(F f) {
    B r;
    for (int i = 0; i < 64; ++i) r.v[i] = static_cast<uint8_t>(f(i));
    return r;
  }
  template <class F>
  TW_SIMD B heach(F f) {
    B r;
    for (int i = 0; i < 32; ++i) {
      const auto x = static_cast<uint32_t>(f(i));
      r.v[2 * i] = static_cast<uint8_t>(x);
      r.v[2 * i + 1] = static_cast<uint8_t>(x >> 8);
    }
    return r;
  }
};

}  // namespace tw::lane::cpu
