#pragma once

// The wrapper on AVX2 + FMA + F16C: a vector is two 256-bit registers. Only for *_avx2.cc.

#include <immintrin.h>

#include "lane/cpu/simd.h"
#include "lane/cpu/simd_transpose.h"

namespace tw::lane::cpu {

struct Avx2 {
  struct V {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  using M = V;  // all ones or all zeros a lane
  using B = I;
  static constexpr int kTileVectors = 6;
  static constexpr int kProductRows = 4;
  static constexpr int kBlockRows = 4;
  static constexpr bool kPairSums = true;
  static constexpr bool kSignedByOffset = false;

  // ---- floats ----
  TW_SIMD V zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  TW_SIMD V set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  TW_SIMD V load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  TW_SIMD V load(const float* p, int n) {
    const I m = lanes(n);
    return {_mm256_maskload_ps(p, m.a), _mm256_maskload_ps(p + 8, m.b)};
  }
  TW_SIMD void store(float* p, V v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
  }
  TW_SIMD void store(float* p, V v, int n) {
    const I m = lanes(n);
    _mm256_maskstore_ps(p, m.a, v.a);
    _mm256_maskstore_ps(p + 8, m.b, v.b);
  }
  TW_SIMD void transpose(const float* from, float* to) { transpose16(from, to); }
  TW_SIMD V add(V x, V y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  TW_SIMD V sub(V x, V y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  TW_SIMD V mul(V x, V y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  TW_SIMD V div(V x, V y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  TW_SIMD V sqrt(V x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
  TW_SIMD V fma(V x, V y, V z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  TW_SIMD V neg(V x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign)};
  }
  TW_SIMD V abs(V x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
  }
  TW_SIMD V max(V x, V y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  TW_SIMD V min(V x, V y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  TW_SIMD M greater(V x, V y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ)}; }
  TW_SIMD M less(V x, V y) { return greater(y, x); }
  TW_SIMD V select(M m, V x, V y) { return {_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)}; }
  TW_SIMD V leading(int n, V x, V y) { return select(from_bits(lanes(n)), x, y); }
  TW_SIMD float first(V x) { return _mm256_cvtss_f32(x.a); }
  TW_SIMD float tree(V x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  TW_SIMD float most(V x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  TW_SIMD float most_bits(V x) {
    const I i = bits(x);
    const __m256i eight = _mm256_max_epi32(i.a, i.b);
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1))));
  }

  // ---- 16-bit storage ----
  TW_SIMD V load_f16(const uint16_t* p) { return {_mm256_cvtph_ps(words(p)), _mm256_cvtph_ps(words(p + 8))}; }
  TW_SIMD V load_f16(const uint16_t* p, int n) {
    uint16_t t[16] = {};
    __builtin_memcpy(t, p, 2 * static_cast<size_t>(n));
    return load_f16(t);
  }
  TW_SIMD void store_f16(uint16_t* p, V x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
  }
  TW_SIMD void store_f16(uint16_t* p, V x, int n) {
    uint16_t t[16];
    store_f16(t, x);
    __builtin_memcpy(p, t, 2 * static_cast<size_t>(n));
  }
  TW_SIMD V load_bf16(const uint16_t* p) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words(p)), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words(p + 8)), 16))};
  }
  TW_SIMD V load_bf16(const uint16_t* p, int n) {
    uint16_t t[16] = {};
    __builtin_memcpy(t, p, 2 * static_cast<size_t>(n));
    return load_bf16(t);
  }
  TW_SIMD void store_bf16(uint16_t* p, V x) { store_i16(reinterpret_cast<int16_t*>(p), {to_bf16(x.a), to_bf16(x.b)}); }
  TW_SIMD void store_bf16(uint16_t* p, V x, int n) {
    uint16_t t[16];
    store_bf16(t, x);
    __builtin_memcpy(p, t, 2 * static_cast<size_t>(n));
  }

  // ---- integers ----
  TW_SIMD I izero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  TW_SIMD I iset(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  TW_SIMD I iload(const int32_t* p) { return bload(p); }
  TW_SIMD void istore(int32_t* p, I x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.b);
  }
  TW_SIMD I iadd(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  TW_SIMD I isub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
  TW_SIMD I imul(I x, I y) { return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)}; }
  TW_SIMD I iand(I x, I y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
  TW_SIMD I ior(I x, I y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
  TW_SIMD I ixor(I x, I y) { return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)}; }
  TW_SIMD I imax(I x, I y) { return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)}; }
  template <int n>
  TW_SIMD I ishl(I x) {
    return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
  }
  template <int n>
  TW_SIMD I ishr(I x) {
    return {_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n)};
  }
  template <int n>
  TW_SIMD I isar(I x) {
    return {_mm256_srai_epi32(x.a, n), _mm256_srai_epi32(x.b, n)};
  }
  TW_SIMD M igreater(I x, I y) { return from_bits({_mm256_cmpgt_epi32(x.a, y.a), _mm256_cmpgt_epi32(x.b, y.b)}); }
  TW_SIMD I iselect(M m, I x, I y) { return bits(select(m, from_bits(x), from_bits(y))); }
  TW_SIMD int32_t isum(I x) {
    const __m256i eight = _mm256_add_epi32(x.a, x.b);
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  TW_SIMD V to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  TW_SIMD I to_int(V x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
  TW_SIMD I bits(V x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
  TW_SIMD V from_bits(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
  TW_SIMD I load_i8(const int8_t* p) { return {_mm256_cvtepi8_epi32(eight(p)), _mm256_cvtepi8_epi32(eight(p + 8))}; }
  TW_SIMD I load_u8(const uint8_t* p) { return {_mm256_cvtepu8_epi32(eight(p)), _mm256_cvtepu8_epi32(eight(p + 8))}; }
  TW_SIMD I load_i16(const int16_t* p) {
    return {_mm256_cvtepi16_epi32(words(p)), _mm256_cvtepi16_epi32(words(p + 8))};
  }
  TW_SIMD void store_i8(int8_t* p, I x) {
    const __m256i w =
        narrow({_mm256_and_si256(x.a, _mm256_set1_epi32(0xff)), _mm256_and_si256(x.b, _mm256_set1_epi32(0xff))});
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packus_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
  }
  TW_SIMD void store_i16(int16_t* p, I x) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        narrow({_mm256_and_si256(x.a, low), _mm256_and_si256(x.b, low)}));
  }

  // ---- bytes ----
  TW_SIMD B bload(const void* p) {
    const auto* q = static_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
  }
  TW_SIMD B bset4(int32_t x) { return iset(x); }
  TW_SIMD B bset1(uint8_t x) {
    const __m256i v = _mm256_set1_epi8(static_cast<char>(x));
    return {v, v};
  }
  TW_SIMD I i_of(B x) { return x; }
  TW_SIMD B b_of(I x) { return x; }
  TW_SIMD B band(B x, B y) { return iand(x, y); }
  TW_SIMD B bor(B x, B y) { return ior(x, y); }
  TW_SIMD B bxor(B x, B y) { return ixor(x, y); }
  TW_SIMD B badd(B x, B y) { return {_mm256_add_epi8(x.a, y.a), _mm256_add_epi8(x.b, y.b)}; }
  TW_SIMD B bsub(B x, B y) { return {_mm256_sub_epi8(x.a, y.a), _mm256_sub_epi8(x.b, y.b)}; }
  template <int n>
  TW_SIMD B bshr16(B x) {
    return {_mm256_srli_epi16(x.a, n), _mm256_srli_epi16(x.b, n)};
  }
  template <int n>
  TW_SIMD B bshl16(B x) {
    return {_mm256_slli_epi16(x.a, n), _mm256_slli_epi16(x.b, n)};
  }
  TW_SIMD B blookup(const uint8_t* table, B index) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    return {_mm256_shuffle_epi8(t, index.a), _mm256_shuffle_epi8(t, index.b)};
  }
  TW_SIMD B bfrom(I lo, I hi) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    return {narrow({_mm256_and_si256(lo.a, low), _mm256_and_si256(lo.b, low)}),
            narrow({_mm256_and_si256(hi.a, low), _mm256_and_si256(hi.b, low)})};
  }

  // ---- dots ----
  TW_SIMD I dot4(I acc, B u, B s) { return {dot4_any(acc.a, u.a, s.a), dot4_any(acc.b, u.b, s.b)}; }
  // Pair sums are at most 2 * 128 * 127 < 2^15, so the 16-bit step does not saturate.
  TW_SIMD I dot4_small(I acc, B u, B s) { return {dot4_pairs(acc.a, u.a, s.a), dot4_pairs(acc.b, u.b, s.b)}; }
  TW_SIMD I dot4_signed(I acc, B x, B y) {
    return {dot4_pairs(acc.a, _mm256_abs_epi8(x.a), _mm256_sign_epi8(y.a, x.a)),
            dot4_pairs(acc.b, _mm256_abs_epi8(x.b), _mm256_sign_epi8(y.b, x.b))};
  }
  TW_SIMD I dot2(I acc, B x, B y) {
    return {_mm256_add_epi32(acc.a, _mm256_madd_epi16(x.a, y.a)), _mm256_add_epi32(acc.b, _mm256_madd_epi16(x.b, y.b))};
  }
  TW_SIMD B bpairs(B u, B s) { return {_mm256_maddubs_epi16(u.a, s.a), _mm256_maddubs_epi16(u.b, s.b)}; }
  TW_SIMD B badd16(B x, B y) { return {_mm256_add_epi16(x.a, y.a), _mm256_add_epi16(x.b, y.b)}; }
  TW_SIMD B bmul16(B x, B y) { return {_mm256_mullo_epi16(x.a, y.a), _mm256_mullo_epi16(x.b, y.b)}; }
  TW_SIMD void pin(I& x) { asm("" : "+x"(x.a), "+x"(x.b)); }
  TW_SIMD I idot_pairs(I acc, B p) { return dot2(acc, p, {_mm256_set1_epi16(1), _mm256_set1_epi16(1)}); }
  TW_SIMD B bwiden01(B u) { return widen(u, 0); }
  TW_SIMD B bwiden23(B u) { return widen(u, 2); }

 private:
  TW_SIMD B widen(B u, int first) {
    const __m256i order =
        _mm256_add_epi8(_mm256_set1_epi8(static_cast<char>(first)),
                        _mm256_setr_epi8(0, -128, 1, -128, 4, -128, 5, -128, 8, -128, 9, -128, 12, -128, 13, -128,  //
                                         0, -128, 1, -128, 4, -128, 5, -128, 8, -128, 9, -128, 12, -128, 13, -128));
    return {_mm256_shuffle_epi8(u.a, order), _mm256_shuffle_epi8(u.b, order)};
  }
  TW_SIMD I lanes(int n) {
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_cmpgt_epi32(_mm256_set1_epi32(n), i), _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8), i)};
  }
  TW_SIMD __m128i words(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  TW_SIMD __m128i eight(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
  // 16 values of 0 .. 65535 to 16 words in order.
  TW_SIMD __m256i narrow(I x) { return _mm256_permute4x64_epi64(_mm256_packus_epi32(x.a, x.b), 0xd8); }
  TW_SIMD __m256i to_bf16(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
  }
  TW_SIMD __m256i dot4_any(__m256i acc, __m256i u, __m256i s) {
    const __m256i u_even = _mm256_and_si256(u, _mm256_set1_epi16(0xff));
    const __m256i u_odd = _mm256_srli_epi16(u, 8);
    const __m256i s_even = _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8);
    const __m256i s_odd = _mm256_srai_epi16(s, 8);
    return _mm256_add_epi32(acc, _mm256_add_epi32(_mm256_madd_epi16(u_even, s_even), _mm256_madd_epi16(u_odd, s_odd)));
  }
  TW_SIMD __m256i dot4_pairs(__m256i acc, __m256i u, __m256i s) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
  }
};

}  // namespace tw::lane::cpu
