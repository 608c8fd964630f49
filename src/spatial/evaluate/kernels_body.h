#pragma once

// The loops of kernels.h, compiled once an instruction set. The tag Isa keeps the copies apart; nothing here may call
// an inline function of another header that is not forced inline, as the linker could keep this copy for everyone.

#include <type_traits>

#include "base/math_contract.h"
#include "spatial/evaluate/kernels.h"

namespace tw::spatial::evaluate {

template <class Isa>
struct KernelBody {
  struct Add {
    template <class T>
    [[gnu::always_inline]] static T of(T a, T b) {
      return a + b;
    }
  };
  struct Sub {
    template <class T>
    [[gnu::always_inline]] static T of(T a, T b) {
      return a - b;
    }
  };
  struct Mul {
    template <class T>
    [[gnu::always_inline]] static T of(T a, T b) {
      return a * b;
    }
  };
  template <class T>
  [[gnu::always_inline]] static bool is_nan(T x) {
    if constexpr (std::is_floating_point_v<T>) return __builtin_isnan(x);
    return false;
  }
  // Of a number and a NaN, the number.
  struct Min {
    template <class T>
    [[gnu::always_inline]] static T of(T a, T b) {
      const T less = a < b ? a : b;
      return is_nan(b) ? a : less;
    }
  };
  struct Max {
    template <class T>
    [[gnu::always_inline]] static T of(T a, T b) {
      const T more = a > b ? a : b;
      return is_nan(b) ? a : more;
    }
  };
  struct Div {
    template <class T>
    [[gnu::always_inline]] static T of(T a, T b) {
      return a / b;
    }
  };
  struct FloorDiv {
    [[gnu::always_inline]] static float of(float a, float b) { return __builtin_floorf(a / b); }
  };

  template <class Op, class T>
  static void binary(const T* a, const T* b, T* out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) out[i] = Op::of(a[i], b[i]);
  }

  template <class Op>
  static bool choose(const int64_t* a, const int64_t* b, int64_t* out, size_t n) {
    binary<Op>(a, b, out, n);
    return false;
  }

  static bool add(const int64_t* a, const int64_t* b, int64_t* out, size_t n) {
    uint64_t wrapped = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      const auto x = static_cast<uint64_t>(a[i]), y = static_cast<uint64_t>(b[i]);
      const uint64_t sum = x + y;
      wrapped |= (x ^ sum) & (y ^ sum);
      out[i] = static_cast<int64_t>(sum);
    }
    return (wrapped >> 63) != 0;
  }

  static bool sub(const int64_t* a, const int64_t* b, int64_t* out, size_t n) {
    uint64_t wrapped = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) {
      const auto x = static_cast<uint64_t>(a[i]), y = static_cast<uint64_t>(b[i]);
      const uint64_t difference = x - y;
      wrapped |= (x ^ y) & (x ^ difference);
      out[i] = static_cast<int64_t>(difference);
    }
    return (wrapped >> 63) != 0;
  }

  static bool mul(const int64_t* a, const int64_t* b, int64_t* out, size_t n) {
    // Factors of 32 bits are the usual case, and the one that vectors multiply.
    uint64_t wide = 0;
    for (size_t i = 0; i < n; ++i)
      wide |= (static_cast<uint64_t>(a[i]) + 0x80000000U) | (static_cast<uint64_t>(b[i]) + 0x80000000U);
    if ((wide >> 32) == 0) {
#pragma GCC ivdep
      for (size_t i = 0; i < n; ++i)
        out[i] = static_cast<int64_t>(static_cast<int32_t>(a[i])) * static_cast<int32_t>(b[i]);
      return false;
    }
    bool wrapped = false;
    for (size_t i = 0; i < n; ++i) wrapped |= __builtin_mul_overflow(a[i], b[i], &out[i]);
    return wrapped;
  }

  static void exp(const float* a, float* out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) out[i] = math::exp<math::Single>(a[i]);
  }
  static void ln(const float* a, float* out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) out[i] = math::ln<math::Single>(a[i]);
  }
  static void recip(const float* a, float* out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) out[i] = 1.0F / a[i];
  }
  static void silu(const float* a, float* out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) out[i] = math::silu<math::Single>(a[i]);
  }
  static void rsqrt(const float* a, float over, float eps, float* out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) out[i] = math::rsq<math::Single>(a[i] / over + eps);
  }

  static void from_bf16(const uint16_t* from, float* out, size_t n) {
    for (size_t i = 0; i < n; ++i) out[i] = __builtin_bit_cast(float, static_cast<uint32_t>(from[i]) << 16);
  }
  static void to_bf16(const float* from, uint16_t* out, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const auto bits = __builtin_bit_cast(uint32_t, from[i]);
      const uint32_t nearest = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
      const uint32_t quiet = (bits >> 16) | 0x40U;
      out[i] = static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : nearest);
    }
  }

  static void round_fixed(double* values, double scale, double end, size_t n) {
    const double unit = 1.0 / scale;
    for (size_t i = 0; i < n; ++i) {
      const double number = values[i] != values[i] ? 0.0 : values[i] * scale;
      const double above = number < -end ? -end : number;
      const double inside = above > end - 1 ? end - 1 : above;
      // Adding 1.5 * 2^52 leaves the nearest integer; the difference has no negative zero.
      values[i] = ((inside + 0x1.8p52) - 0x1.8p52) * unit;
    }
  }

  static void add_products(const float* a, const float* b, float* sums, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; ++i) sums[i] += a[i] * b[i];
  }

  static void contract(const float* a, int64_t a_step, const float* b, int64_t b_step, float* sums, size_t inner,
                       size_t n) {
    size_t k = 0;
    for (; k + 4 <= inner; k += 4, a += 4 * a_step, b += 4 * b_step) {
      const float a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
      const float *b1 = b + b_step, *b2 = b1 + b_step, *b3 = b2 + b_step;
#pragma GCC ivdep
      for (size_t j = 0; j < n; ++j) sums[j] = (((sums[j] + a0 * b[j]) + a1 * b1[j]) + a2 * b2[j]) + a3 * b3[j];
    }
    for (; k < inner; ++k, a += a_step, b += b_step) {
      const float factor = *a;
#pragma GCC ivdep
      for (size_t j = 0; j < n; ++j) sums[j] += factor * b[j];
    }
  }

  static constexpr Kernels kTable{{binary<Add, float>, binary<Sub, float>, binary<Mul, float>, binary<Min, float>,
                                   binary<Max, float>, binary<FloorDiv, float>},
                                  {binary<Add, double>, binary<Sub, double>, binary<Mul, double>, binary<Min, double>,
                                   binary<Max, double>, binary<Div, double>},
                                  {add, sub, mul, choose<Min>, choose<Max>},
                                  {exp, ln, recip, silu},
                                  rsqrt,
                                  from_bf16,
                                  to_bf16,
                                  round_fixed,
                                  add_products,
                                  contract};
};

}  // namespace tw::spatial::evaluate
