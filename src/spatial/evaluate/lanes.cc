#include "spatial/evaluate/lanes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/half.h"
#include "spatial/evaluate/arithmetic.h"
#include "spatial/evaluate/codec.h"
#include "spatial/evaluate/kernels.h"

namespace tw::spatial::evaluate {
namespace {

// ---- elements of pages, widened ----

template <class C>
struct IntegerCode {
  using Code = C;
  static int64_t integer(Code code) { return code; }
  static double real(Code code) { return static_cast<double>(code); }
  static float single(Code code) { return static_cast<float>(static_cast<double>(code)); }
};
template <class C, int fraction>
struct FixedCode {
  using Code = C;
  static constexpr double kUnit = 1.0 / (1 << fraction);
  static double real(Code code) { return static_cast<double>(code) * kUnit; }
  static float single(Code code) { return static_cast<float>(code) * static_cast<float>(kUnit); }
};
struct Bf16Code {
  using Code = uint16_t;
  static float single(Code code) { return bf16_to_f32(code); }
  static double real(Code code) { return bf16_to_f32(code); }
};
struct F16Code {
  using Code = uint16_t;
  static float single(Code code) { return f16_to_f32(code); }
  static double real(Code code) { return f16_to_f32(code); }
};
struct F32Code {
  using Code = float;
  static float single(Code code) { return code; }
  static double real(Code code) { return code; }
};

template <class Visit>
void visit_integer(Precision precision, Visit&& visit) {
  switch (precision) {
    case Precision::I8: return visit(IntegerCode<int8_t>{});
    case Precision::I16: return visit(IntegerCode<int16_t>{});
    case Precision::I32: return visit(IntegerCode<int32_t>{});
    case Precision::I64: return visit(IntegerCode<int64_t>{});
    default: break;
  }
  TW_CHECK(false, "{} is no integer precision", name(precision));
}

template <class Visit>
void visit_any(Precision precision, Visit&& visit) {
  switch (precision) {
    case Precision::Fx16: return visit(FixedCode<int16_t, 8>{});
    case Precision::Fx32: return visit(FixedCode<int32_t, 16>{});
    case Precision::Bf16: return visit(Bf16Code{});
    case Precision::F16: return visit(F16Code{});
    case Precision::F32: return visit(F32Code{});
    default: return visit_integer(precision, visit);
  }
}

template <class C>
const typename C::Code* codes_of(C, const std::byte* page) {
  return reinterpret_cast<const typename C::Code*>(page);
}

// out[i] = widen(page[first + i * step]). Neighbours, and one element for all, have loops of their own.
template <class C, class Value, class Widen>
void take(C code, const std::byte* page, int64_t first, int64_t step, Value* out, size_t n, Widen&& widen) {
  const auto* from = codes_of(code, page) + first;
  if (step == 1) {
    for (size_t i = 0; i < n; ++i) out[i] = widen(from[i]);
  } else if (step == 0) {
    std::fill_n(out, n, widen(*from));
  } else {
    for (size_t i = 0; i < n; ++i) out[i] = widen(from[static_cast<int64_t>(i) * step]);
  }
}

template <class C, class Value, class Widen>
void take_at(C code, const std::byte* page, const int64_t* offsets, Value* out, size_t n, Widen&& widen) {
  const auto* from = codes_of(code, page);
  for (size_t i = 0; i < n; ++i) out[i] = widen(from[offsets[i]]);
}

// The terms of a sum as two operations of a domain, by strips.
template <class Lanes, class Value, class Factor>
Trouble add_terms(const Lanes& lanes, Factor&& factor, const Value* b, Value* sums, size_t n) {
  Value terms[kStrip];
  for (size_t done = 0; done < n; done += kStrip) {
    const size_t count = std::min(kStrip, n - done);
    Trouble trouble = lanes.binary(BinaryOp::Mul, factor(done), b + done, terms, count);
    if (trouble == Trouble::None) trouble = lanes.binary(BinaryOp::Add, sums + done, terms, sums + done, count);
    if (trouble != Trouble::None) return trouble;
  }
  return Trouble::None;
}

template <class Lanes, class Value>
Trouble contract_terms(const Lanes& lanes, const Value* a, int64_t a_step, const Value* b, int64_t b_step, Value* sums,
                       size_t inner, size_t n) {
  Value factors[kStrip];
  for (size_t k = 0; k < inner; ++k, a += a_step, b += b_step) {
    std::fill_n(factors, std::min(n, kStrip), *a);
    const Trouble trouble = add_terms(
        lanes, [&](size_t) { return factors; }, b, sums, n);
    if (trouble != Trouble::None) return trouble;
  }
  return Trouble::None;
}

struct FixedEnds {
  double scale;
  double end;
};
FixedEnds fixed_ends(Precision precision) {
  const PrecisionTraits& format = traits(precision);
  return {std::ldexp(1.0, static_cast<int>(format.fraction)), std::ldexp(1.0, static_cast<int>(format.bits) - 1)};
}

bool fixed(Precision precision) { return traits(precision).kind == NumberKind::Fixed; }

}  // namespace

// ---- Singles ----

void Singles::load(Precision from, const std::byte* page, int64_t first, int64_t step, float* out, size_t n) const {
  if (from == Precision::Bf16 && step == 1)
    return kernels().from_bf16(reinterpret_cast<const uint16_t*>(page) + first, out, n);
  visit_any(from, [&](auto code) {
    take(code, page, first, step, out, n, [](auto c) { return decltype(code)::single(c); });
  });
}

void Singles::gather(Precision from, const std::byte* page, const int64_t* offsets, float* out, size_t n) const {
  visit_any(from,
            [&](auto code) { take_at(code, page, offsets, out, n, [](auto c) { return decltype(code)::single(c); }); });
}

bool Singles::store(Precision to, const float* values, std::byte* codes, size_t n) const {
  if (to == Precision::F32) {
    std::memcpy(codes, values, n * sizeof(float));
  } else if (to == Precision::Bf16) {
    kernels().to_bf16(values, reinterpret_cast<uint16_t*>(codes), n);
  } else {
    for (size_t i = 0; i < n; ++i) put_real(to, values[i], codes, i);
  }
  return true;
}

Trouble Singles::binary(BinaryOp op, const float* a, const float* b, float* out, size_t n) const {
  kernels().singles[static_cast<size_t>(op)](a, b, out, n);
  return Trouble::None;
}

void Singles::unary(UnaryOp op, const float* a, float* out, size_t n) const {
  kernels().functions[static_cast<size_t>(op)](a, out, n);
}

void Singles::rsqrt(const float* a, uint64_t eps_nano, uint64_t over, float* out, size_t n) const {
  kernels().rsqrt(a, static_cast<float>(over), rsqrt_eps(eps_nano), out, n);
}

Trouble Singles::add_up(const float* values, size_t n, float& sum) const {
  float all = sum;
  for (size_t i = 0; i < n; ++i) all += values[i];
  sum = all;
  return Trouble::None;
}

Trouble Singles::add_products(const float* a, const float* b, float* sums, size_t n) const {
  kernels().add_products(a, b, sums, n);
  return Trouble::None;
}

Trouble Singles::contract(const float* a, int64_t a_step, const float* b, int64_t b_step, float* sums, size_t inner,
                          size_t n) const {
  kernels().contract(a, a_step, b, b_step, sums, inner, n);
  return Trouble::None;
}

// ---- Doubles ----

double Doubles::constant(double value) const { return node(accumulator_, value); }

void Doubles::round(double* values, size_t n) const {
  if (fixed(accumulator_)) {
    const FixedEnds ends = fixed_ends(accumulator_);
    kernels().round_fixed(values, ends.scale, ends.end, n);
  } else {
    for (size_t i = 0; i < n; ++i) values[i] = node(accumulator_, values[i]);
  }
}

void Doubles::load(Precision from, const std::byte* page, int64_t first, int64_t step, double* out, size_t n) const {
  visit_any(from,
            [&](auto code) { take(code, page, first, step, out, n, [](auto c) { return decltype(code)::real(c); }); });
  if (from != accumulator_) round(out, n);
}

void Doubles::gather(Precision from, const std::byte* page, const int64_t* offsets, double* out, size_t n) const {
  visit_any(from,
            [&](auto code) { take_at(code, page, offsets, out, n, [](auto c) { return decltype(code)::real(c); }); });
  if (from != accumulator_) round(out, n);
}

bool Doubles::store(Precision to, const double* values, std::byte* codes, size_t n) const {
  if (!fixed(to)) {
    for (size_t i = 0; i < n; ++i) put_real(to, values[i], codes, i);
    return true;
  }
  const FixedEnds ends = fixed_ends(to);
  double rounded[kStrip];
  for (size_t done = 0; done < n; done += kStrip) {
    const size_t count = std::min(kStrip, n - done);
    std::copy_n(values + done, count, rounded);
    kernels().round_fixed(rounded, ends.scale, ends.end, count);
    if (to == Precision::Fx16) {
      auto* out = reinterpret_cast<int16_t*>(codes) + done;
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<int16_t>(rounded[i] * ends.scale);
    } else {
      auto* out = reinterpret_cast<int32_t*>(codes) + done;
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>(rounded[i] * ends.scale);
    }
  }
  return true;
}

Trouble Doubles::binary(BinaryOp op, const double* a, const double* b, double* out, size_t n) const {
  kernels().doubles[static_cast<size_t>(op)](a, b, out, n);
  if (op == BinaryOp::Min || op == BinaryOp::Max) return Trouble::None;
  round(out, n);
  if (op == BinaryOp::FloorDiv) {
    for (size_t i = 0; i < n; ++i) out[i] = std::floor(out[i]);
    round(out, n);
  }
  return Trouble::None;
}

void Doubles::unary(UnaryOp op, const double* a, double* out, size_t n) const {
  for (size_t i = 0; i < n; ++i) out[i] = evaluate::unary(accumulator_, op, a[i]);
}

void Doubles::rsqrt(const double* a, uint64_t eps_nano, uint64_t over, double* out, size_t n) const {
  for (size_t i = 0; i < n; ++i) out[i] = evaluate::rsqrt(accumulator_, a[i], eps_nano, over);
}

Trouble Doubles::add_up(const double* values, size_t n, double& sum) const {
  for (size_t i = 0; i < n; ++i) {
    sum += values[i];
    round(&sum, 1);
  }
  return Trouble::None;
}

Trouble Doubles::add_products(const double* a, const double* b, double* sums, size_t n) const {
  return add_terms(
      *this, [a](size_t done) { return a + done; }, b, sums, n);
}

Trouble Doubles::contract(const double* a, int64_t a_step, const double* b, int64_t b_step, double* sums, size_t inner,
                          size_t n) const {
  return contract_terms(*this, a, a_step, b, b_step, sums, inner, n);
}

// ---- Integers ----

void Integers::load(Precision from, const std::byte* page, int64_t first, int64_t step, int64_t* out, size_t n) const {
  visit_integer(from, [&](auto code) {
    take(code, page, first, step, out, n, [](auto c) { return decltype(code)::integer(c); });
  });
}

void Integers::gather(Precision from, const std::byte* page, const int64_t* offsets, int64_t* out, size_t n) const {
  visit_integer(from, [&](auto code) {
    take_at(code, page, offsets, out, n, [](auto c) { return decltype(code)::integer(c); });
  });
}

bool Integers::store(Precision to, const int64_t* values, std::byte* codes, size_t n) const {
  if (is_real(to)) {
    for (size_t i = 0; i < n; ++i) put_real(to, static_cast<double>(values[i]), codes, i);
    return true;
  }
  const int64_t high = int_max(to), low = -high - 1;
  bool outside = false;
  for (size_t i = 0; i < n; ++i) outside |= (values[i] < low) | (values[i] > high);
  if (outside) return false;
  visit_integer(to, [&](auto code) {
    using Code = typename decltype(code)::Code;
    auto* out = reinterpret_cast<Code*>(codes);
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<Code>(values[i]);
  });
  return true;
}

Trouble Integers::binary(BinaryOp op, const int64_t* a, const int64_t* b, int64_t* out, size_t n) const {
  if (op != BinaryOp::FloorDiv)
    return kernels().integers[static_cast<size_t>(op)](a, b, out, n) ? Trouble::Overflow : Trouble::None;
  for (size_t i = 0; i < n; ++i) {
    if (b[i] == 0) return Trouble::DivisionByZero;
    if (b[i] == -1) {
      if (__builtin_sub_overflow(int64_t{0}, a[i], &out[i])) return Trouble::Overflow;
      continue;
    }
    const int64_t quotient = a[i] / b[i];
    out[i] = quotient - ((a[i] % b[i] != 0 && (a[i] < 0) != (b[i] < 0)) ? 1 : 0);
  }
  return Trouble::None;
}

void Integers::shift_right(const int64_t* a, uint32_t by, int64_t* out, size_t n) const {
  for (size_t i = 0; i < n; ++i) out[i] = a[i] >> by;
}

Trouble Integers::add_up(const int64_t* values, size_t n, int64_t& sum) const {
  for (size_t i = 0; i < n; ++i)
    if (__builtin_add_overflow(sum, values[i], &sum)) return Trouble::Overflow;
  return Trouble::None;
}

Trouble Integers::add_products(const int64_t* a, const int64_t* b, int64_t* sums, size_t n) const {
  return add_terms(
      *this, [a](size_t done) { return a + done; }, b, sums, n);
}

Trouble Integers::contract(const int64_t* a, int64_t a_step, const int64_t* b, int64_t b_step, int64_t* sums,
                           size_t inner, size_t n) const {
  return contract_terms(*this, a, a_step, b, b_step, sums, inner, n);
}

}  // namespace tw::spatial::evaluate
