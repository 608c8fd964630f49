#pragma once

// What the specification of bodies leaves to the evaluator, said once for one value in double; the vector loops do the
// same a strip at a time, and the oracle of the tests has it from here.

#include <cmath>

#include "base/math_contract.h"
#include "spatial/expr.h"
#include "spatial/precision.h"
#include "spatial/program.h"

namespace tw::spatial::evaluate {

// What nodes of real bodies are rounded to: the accumulator, or f32 in a section that accumulates integers.
inline Precision real_accumulator(const Program& program) {
  return is_real(program.accumulator) ? program.accumulator : Precision::F32;
}

// A value as the accumulator holds it. Fixed point has one zero.
inline double node(Precision accumulator, double value) {
  const double rounded = round_to(accumulator, value);
  return traits(accumulator).kind == NumberKind::Fixed ? rounded + 0.0 : rounded;
}

// Operands are values of the accumulator; the answer is one.
inline double binary(Precision accumulator, BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::Add: return node(accumulator, a + b);
    case BinaryOp::Sub: return node(accumulator, a - b);
    case BinaryOp::Mul: return node(accumulator, a * b);
    case BinaryOp::Min: return std::isnan(b) || a < b ? a : b;
    case BinaryOp::Max: return std::isnan(b) || a > b ? a : b;
    case BinaryOp::FloorDiv: break;
  }
  return node(accumulator, std::floor(node(accumulator, a / b)));
}

// Exp, Ln and Silu are the functions of the numerics contract, of one float; Recip is one division.
inline double unary(Precision accumulator, UnaryOp op, double x) {
  const auto single = static_cast<float>(x);
  switch (op) {
    case UnaryOp::Exp: return node(accumulator, math::exp(single));
    case UnaryOp::Ln: return node(accumulator, math::ln(single));
    case UnaryOp::Silu: return node(accumulator, math::silu(single));
    case UnaryOp::Recip: break;
  }
  return node(accumulator, 1.0 / x);
}

// In f32 throughout: a division, a sum, a root and a division.
inline float rsqrt_eps(uint64_t eps_nano) { return static_cast<float>(static_cast<double>(eps_nano) * 1e-9); }
inline double rsqrt(Precision accumulator, double x, uint64_t eps_nano, uint64_t over) {
  return node(accumulator, math::rsq(static_cast<float>(x) / static_cast<float>(over) + rsqrt_eps(eps_nano)));
}

}  // namespace tw::spatial::evaluate
