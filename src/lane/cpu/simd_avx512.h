#pragma once

// The wrapper on AVX-512 (F, BW, DQ, VL, VNNI): a vector is one register. Only for *_avx512.cc, and for the test that
// runs it emulated (TW_EMULATE_AVX512), where the intrinsics come from SIMDe and a shim.

#if defined(TW_EMULATE_AVX512)
#include "lane/cpu/testing/avx512_emulation.h"
#define TW_AVX512_NAME EmulatedAvx512
#else
#include <immintrin.h>
#define TW_AVX512_NAME Avx512
#endif

#include "lane/cpu/simd.h"
#include "lane/cpu/simd_transpose.h"

namespace tw::lane::cpu {

struct TW_AVX512_NAME {
  struct V {
    __m512 v;
  };
  struct I {
    __m512i v;
  };
  struct M {
    __mmask16 m;
  };
  using B = I;
  static constexpr int kTileVectors = 24;
  static constexpr int kProductRows = 4;
#if defined(TW_EMULATE_AVX512)
  static constexpr int kBlockRows = 2;  // emulated instructions are long: eight rows take g++ minutes
#else
  static constexpr int kBlockRows = 8;
#endif
  static constexpr bool kPairSums = false;
  static constexpr bool kSignedByOffset = true;

  // ---- floats ----
  TW_SIMD V zero() { return {_mm512_setzero_ps()}; }
  TW_SIMD V set(float x) { return {_mm512_set1_ps(x)}; }
  TW_SIMD V load(const float* p) { return {_mm512_loadu_ps(p)}; }
  TW_SIMD V load(const float* p, int n) { return {_mm512_maskz_loadu_ps(lanes(n), p)}; }
  TW_SIMD void store(float* p, V x) { _mm512_storeu_ps(p, x.v); }
  TW_SIMD void store(float* p, V x, int n) { _mm512_mask_storeu_ps(p, lanes(n), x.v); }
  TW_SIMD void transpose(const float* from, float* to) { transpose16(from, to); }
  TW_SIMD V add(V x, V y) { return {_mm512_add_ps(x.v, y.v)}; }
  TW_SIMD V sub(V x, V y) { return {_mm512_sub_ps(x.v, y.v)}; }
  TW_SIMD V mul(V x, V y) { return {_mm512_mul_ps(x.v, y.v)}; }
  TW_SIMD V div(V x, V y) { return {_mm512_div_ps(x.v, y.v)}; }
  TW_SIMD V sqrt(V x) { return {_mm512_sqrt_ps(x.v)}; }
  TW_SIMD V fma(V x, V y, V z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
  TW_SIMD V neg(V x) { return from_bits(ixor(bits(x), iset(INT32_MIN))); }
  TW_SIMD V abs(V x) { return from_bits(iand(bits(x), iset(INT32_MAX))); }
  TW_SIMD V max(V x, V y) { return {_mm512_max_ps(x.v, y.v)}; }
  TW_SIMD V min(V x, V y) { return {_mm512_min_ps(x.v, y.v)}; }
  TW_SIMD M greater(V x, V y) { return {_mm512_cmp_ps_mask(x.v, y.v, _CMP_GT_OQ)}; }
  TW_SIMD M less(V x, V y) { return greater(y, x); }
  TW_SIMD V select(M m, V x, V y) { return {_mm512_mask_blend_ps(m.m, y.v, x.v)}; }
  TW_SIMD V leading(int n, V x, V y) { return {_mm512_mask_blend_ps(lanes(n), y.v, x.v)}; }
  TW_SIMD float first(V x) { return _mm_cvtss_f32(_mm512_castps512_ps128(x.v)); }
  TW_SIMD float tree(V x) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  TW_SIMD float most(V x) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  TW_SIMD float most_bits(V x) {
    const __m256i eight = _mm256_max_epi32(low_half(bits(x)), high_half(bits(x)));
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1))));
  }

  // ---- 16-bit storage ----
  TW_SIMD V load_f16(const uint16_t* p) { return {_mm512_cvtph_ps(words(p))}; }
  TW_SIMD V load_f16(const uint16_t* p, int n) {
    uint16_t t[16] = {};
    __builtin_memcpy(t, p, 2 * static_cast<size_t>(n));
    return load_f16(t);
  }
  TW_SIMD void store_f16(uint16_t* p, V x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
  }
  TW_SIMD void store_f16(uint16_t* p, V x, int n) {
    uint16_t t[16];
    store_f16(t, x);
    __builtin_memcpy(p, t, 2 * static_cast<size_t>(n));
  }
  TW_SIMD V load_bf16(const uint16_t* p) { return from_bits({_mm512_slli_epi32(_mm512_cvtepu16_epi32(words(p)), 16)}); }
  TW_SIMD V load_bf16(const uint16_t* p, int n) {
    uint16_t t[16] = {};
    __builtin_memcpy(t, p, 2 * static_cast<size_t>(n));
    return load_bf16(t);
  }
  TW_SIMD void store_bf16(uint16_t* p, V x) {
    const I raw = bits(x);
    const I high = ishr<16>(raw);
    const I rounded = ishr<16>(iadd(raw, iadd(iand(high, iset(1)), iset(0x7fff))));
    const M nan = {_mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q)};
    store_i16(reinterpret_cast<int16_t*>(p), iselect(nan, ior(high, iset(0x40)), rounded));
  }
  TW_SIMD void store_bf16(uint16_t* p, V x, int n) {
    uint16_t t[16];
    store_bf16(t, x);
    __builtin_memcpy(p, t, 2 * static_cast<size_t>(n));
  }

  // ---- integers ----
  TW_SIMD I izero() { return {_mm512_setzero_si512()}; }
  TW_SIMD I iset(int32_t x) { return {_mm512_set1_epi32(x)}; }
  TW_SIMD I iload(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
  TW_SIMD void istore(int32_t* p, I x) { _mm512_storeu_si512(p, x.v); }
  TW_SIMD I iadd(I x, I y) { return {_mm512_add_epi32(x.v, y.v)}; }
  TW_SIMD I isub(I x, I y) { return {_mm512_sub_epi32(x.v, y.v)}; }
  TW_SIMD I imul(I x, I y) { return {_mm512_mullo_epi32(x.v, y.v)}; }
  TW_SIMD I iand(I x, I y) { return {_mm512_and_si512(x.v, y.v)}; }
  TW_SIMD I ior(I x, I y) { return {_mm512_or_si512(x.v, y.v)}; }
  TW_SIMD I ixor(I x, I y) { return {_mm512_xor_si512(x.v, y.v)}; }
  TW_SIMD I imax(I x, I y) { return {_mm512_max_epi32(x.v, y.v)}; }
  template <int n>
  TW_SIMD I ishl(I x) {
    return {_mm512_slli_epi32(x.v, n)};
  }
  template <int n>
  TW_SIMD I ishr(I x) {
    return {_mm512_srli_epi32(x.v, n)};
  }
  template <int n>
  TW_SIMD I isar(I x) {
    return {_mm512_srai_epi32(x.v, n)};
  }
  TW_SIMD M igreater(I x, I y) { return {_mm512_cmpgt_epi32_mask(x.v, y.v)}; }
  TW_SIMD I iselect(M m, I x, I y) { return {_mm512_mask_blend_epi32(m.m, y.v, x.v)}; }
  TW_SIMD int32_t isum(I x) {
    const __m256i eight = _mm256_add_epi32(low_half(x), high_half(x));
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  TW_SIMD V to_float(I x) { return {_mm512_cvtepi32_ps(x.v)}; }
  TW_SIMD I to_int(V x) { return {_mm512_cvtps_epi32(x.v)}; }
  TW_SIMD I bits(V x) { return {_mm512_castps_si512(x.v)}; }
  TW_SIMD V from_bits(I x) { return {_mm512_castsi512_ps(x.v)}; }
  TW_SIMD I load_i8(const int8_t* p) { return {_mm512_cvtepi8_epi32(sixteen(p))}; }
  TW_SIMD I load_u8(const uint8_t* p) { return {_mm512_cvtepu8_epi32(sixteen(p))}; }
  TW_SIMD I load_i16(const int16_t* p) { return {_mm512_cvtepi16_epi32(words(p))}; }
  TW_SIMD void store_i8(int8_t* p, I x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v)); }
  TW_SIMD void store_i16(int16_t* p, I x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x.v));
  }

  // ---- bytes ----
  TW_SIMD B bload(const void* p) { return {_mm512_loadu_si512(p)}; }
  TW_SIMD B bset4(int32_t x) { return iset(x); }
  TW_SIMD B bset1(uint8_t x) { return {_mm512_set1_epi8(static_cast<char>(x))}; }
  TW_SIMD I i_of(B x) { return x; }
  TW_SIMD B b_of(I x) { return x; }
  TW_SIMD B band(B x, B y) { return iand(x, y); }
  TW_SIMD B bor(B x, B y) { return ior(x, y); }
  TW_SIMD B bxor(B x, B y) { return ixor(x, y); }
  TW_SIMD B badd(B x, B y) { return {_mm512_add_epi8(x.v, y.v)}; }
  TW_SIMD B bsub(B x, B y) { return {_mm512_sub_epi8(x.v, y.v)}; }
  template <int n>
  TW_SIMD B bshr16(B x) {
    return {_mm512_srli_epi16(x.v, n)};
  }
  template <int n>
  TW_SIMD B bshl16(B x) {
    return {_mm512_slli_epi16(x.v, n)};
  }
  TW_SIMD B blookup(const uint8_t* table, B index) {
    return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(sixteen(table)), index.v)};
  }
  TW_SIMD B bfrom(I lo, I hi) {
    return {_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(lo.v)), _mm512_cvtepi32_epi16(hi.v), 1)};
  }

  // ---- dots ----
  TW_SIMD I dot4(I acc, B u, B s) { return {_mm512_dpbusd_epi32(acc.v, u.v, s.v)}; }
  TW_SIMD I dot4_small(I acc, B u, B s) { return dot4(acc, u, s); }
  TW_SIMD I dot4_signed(I acc, B x, B y) {
    const __mmask64 negative = _mm512_movepi8_mask(x.v);
    const B signed_y = {_mm512_mask_sub_epi8(y.v, negative, _mm512_setzero_si512(), y.v)};
    return dot4(acc, {_mm512_abs_epi8(x.v)}, signed_y);
  }
  TW_SIMD I dot2(I acc, B x, B y) { return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(x.v, y.v))}; }
  TW_SIMD B bpairs(B u, B s) { return {_mm512_maddubs_epi16(u.v, s.v)}; }
  TW_SIMD B badd16(B x, B y) { return {_mm512_add_epi16(x.v, y.v)}; }
  TW_SIMD B bmul16(B x, B y) { return {_mm512_mullo_epi16(x.v, y.v)}; }
#if defined(TW_EMULATE_AVX512)
  TW_SIMD void pin(I&) {}
#else
  TW_SIMD void pin(I& x) { asm("" : "+v"(x.v)); }
#endif
  TW_SIMD I idot_pairs(I acc, B p) { return dot2(acc, p, {_mm512_set1_epi16(1)}); }
  TW_SIMD B bwiden01(B u) {
    return {_mm512_maskz_shuffle_epi8(kEven, u.v, _mm512_set4_epi32(0x0d0d0c0c, 0x09090808, 0x05050404, 0x01010000))};
  }
  TW_SIMD B bwiden23(B u) {
    return {_mm512_maskz_shuffle_epi8(kEven, u.v, _mm512_set4_epi32(0x0f0f0e0e, 0x0b0b0a0a, 0x07070606, 0x03030202))};
  }

 private:
  static constexpr __mmask64 kEven = 0x5555555555555555;
  TW_SIMD __mmask16 lanes(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
  TW_SIMD __m256i low_half(I x) { return _mm256_castps_si256(_mm512_castps512_ps256(from_bits(x).v)); }
  TW_SIMD __m256i high_half(I x) { return _mm256_castps_si256(_mm512_extractf32x8_ps(from_bits(x).v, 1)); }
  TW_SIMD __m256i words(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  TW_SIMD __m128i sixteen(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
};

}  // namespace tw::lane::cpu
