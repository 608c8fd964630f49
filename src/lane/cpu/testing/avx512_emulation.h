#pragma once

// The AVX-512 intrinsics of simd_avx512.h on a machine without them: SIMDe's portable versions under their native
// names, and here the few that it lacks. For tests only.

#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_INLINE  // an instruction is hundreds of them: written out in every kernel they take g++ minutes
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>

#include <cstdint>
#include <cstring>

namespace tw::lane::cpu::emulated {

// Lanes as an array and back.
template <class To, class From>
To cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
template <class T, int N>
struct Lanes {
  T v[N];
};
template <class To, class T, class From>
simde__m512i widen(const From& from) {
  constexpr int kCount = static_cast<int>(sizeof(From) / sizeof(T));
  static_assert(kCount == 16);
  const auto lanes = cast<Lanes<T, kCount>>(from);
  Lanes<int32_t, 16> r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<To>(lanes.v[i]);
  return cast<simde__m512i>(r);
}
template <class To, class T>
To narrow(const simde__m512i& from) {
  const auto lanes = cast<Lanes<int32_t, 16>>(from);
  Lanes<T, 16> r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<T>(lanes.v[i]);
  return cast<To>(r);
}

struct Halves {
  __m256 v[2];
};

inline simde__m512 loadu(simde__mmask16 m, const float* p) {
  Lanes<float, 16> r = {};
  for (int i = 0; i < 16; ++i)
    if ((m >> i & 1) != 0) r.v[i] = p[i];
  return cast<simde__m512>(r);
}
inline void storeu(float* p, simde__mmask16 m, simde__m512 x) {
  const auto lanes = cast<Lanes<float, 16>>(x);
  for (int i = 0; i < 16; ++i)
    if ((m >> i & 1) != 0) p[i] = lanes.v[i];
}
inline simde__m512 to_float(simde__m512i x) {
  const auto lanes = cast<Lanes<int32_t, 16>>(x);
  Lanes<float, 16> r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<float>(lanes.v[i]);
  return cast<simde__m512>(r);
}
inline simde__m512i to_int(simde__m512 x) {
  const auto halves = cast<Halves>(x);
  struct {
    __m256i v[2];
  } r{{_mm256_cvtps_epi32(halves.v[0]), _mm256_cvtps_epi32(halves.v[1])}};
  return cast<simde__m512i>(r);
}
inline simde__m512 from_half(__m256i x) {
  const Halves r{{_mm256_cvtph_ps(_mm256_castsi256_si128(x)), _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1))}};
  return cast<simde__m512>(r);
}
inline __m256i to_half(simde__m512 x) {
  const auto halves = cast<Halves>(x);
  struct {
    __m128i v[2];
  } r{{_mm256_cvtps_ph(halves.v[0], _MM_FROUND_TO_NEAREST_INT),
       _mm256_cvtps_ph(halves.v[1], _MM_FROUND_TO_NEAREST_INT)}};
  return cast<__m256i>(r);
}
inline simde__m512i shift_right(simde__m512i x, int n) {
  auto lanes = cast<Lanes<int32_t, 16>>(x);
  for (int32_t& lane : lanes.v) lane >>= n;
  return cast<simde__m512i>(lanes);
}

}  // namespace tw::lane::cpu::emulated

#define _mm512_maskz_loadu_ps(m, p) ::tw::lane::cpu::emulated::loadu(m, p)
#define _mm512_mask_storeu_ps(p, m, x) ::tw::lane::cpu::emulated::storeu(p, m, x)
#define _mm512_cvtepi32_ps(x) ::tw::lane::cpu::emulated::to_float(x)
#define _mm512_cvtps_epi32(x) ::tw::lane::cpu::emulated::to_int(x)
#define _mm512_cvtph_ps(x) ::tw::lane::cpu::emulated::from_half(x)
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(x, rounding) ::tw::lane::cpu::emulated::to_half(x)
#define _mm512_cvtepi8_epi32(x) ::tw::lane::cpu::emulated::widen<int32_t, int8_t>(x)
#define _mm512_cvtepu8_epi32(x) ::tw::lane::cpu::emulated::widen<int32_t, uint8_t>(x)
#define _mm512_cvtepi16_epi32(x) ::tw::lane::cpu::emulated::widen<int32_t, int16_t>(x)
#define _mm512_cvtepu16_epi32(x) ::tw::lane::cpu::emulated::widen<int32_t, uint16_t>(x)
#define _mm512_cvtepi32_epi8(x) (::tw::lane::cpu::emulated::narrow<__m128i, int8_t>(x))
#define _mm512_cvtepi32_epi16(x) (::tw::lane::cpu::emulated::narrow<__m256i, int16_t>(x))
#undef _mm512_srai_epi32
#define _mm512_srai_epi32(x, n) ::tw::lane::cpu::emulated::shift_right(x, n)
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps(x, n) (::tw::lane::cpu::emulated::cast<::tw::lane::cpu::emulated::Halves>(x).v[n])
#undef _mm512_madd_epi16  // SIMDe's alias takes four arguments
#define _mm512_madd_epi16(x, y) simde_mm512_madd_epi16(x, y)
