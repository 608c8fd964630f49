#pragma once

// The vector loops: each does one operation to a strip of n values. `out` may be an operand, otherwise strips do not
// overlap. Every instruction set gives the same bits (base/math_contract.h; each operation here rounds once).

#include <cstddef>
#include <cstdint>

namespace tw::spatial::evaluate {

struct Kernels {
  using Singles = void (*)(const float* a, const float* b, float* out, size_t n);
  using Doubles = void (*)(const double* a, const double* b, double* out, size_t n);
  // Answer whether some value left 64 bits; the strip is meaningless then.
  using Integers = bool (*)(const int64_t* a, const int64_t* b, int64_t* out, size_t n);
  using Function = void (*)(const float* a, float* out, size_t n);

  Singles singles[6];     // by BinaryOp
  Doubles doubles[6];     // by BinaryOp, but the last is a plain quotient
  Integers integers[5];   // by BinaryOp, without FloorDiv
  Function functions[4];  // by UnaryOp
  // 1 / sqrt(a / over + eps)
  void (*rsqrt)(const float* a, float over, float eps, float* out, size_t n);
  void (*from_bf16)(const uint16_t* from, float* out, size_t n);
  void (*to_bf16)(const float* from, uint16_t* out, size_t n);  // nearest even
  // To the nearest multiple of 1 / scale, even on ties, within -end / scale and (end - 1) / scale; NaN becomes 0.
  void (*round_fixed)(double* values, double scale, double end, size_t n);
  // sums[i] += a[i] * b[i], the product and the sum rounded
  void (*add_products)(const float* a, const float* b, float* sums, size_t n);
  // sums[j] += a[k * a_step] * b[k * b_step + j] for k from 0 to inner - 1, every product and every sum rounded
  void (*contract)(const float* a, int64_t a_step, const float* b, int64_t b_step, float* sums, size_t inner, size_t n);
};

// The best that this machine runs.
const Kernels& kernels();
// The loops without any special instruction set: what the others must equal.
const Kernels& portable_kernels();

}  // namespace tw::spatial::evaluate
