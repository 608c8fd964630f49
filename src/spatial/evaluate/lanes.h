#pragma once

// A strip of points at a time: the arithmetic of the three domains that a stage computes in, with one face.
//
//   Singles   reals in f32                      Value float
//   Doubles   reals in any other accumulator    Value double, rounded after each operation
//   Integers  exact in 64 bits                  Value int64_t
//
// A load takes n elements of a page from `first` on, `step` apart; a gather takes those at n offsets. Both widen to the
// domain. A store narrows n values to codes, one after the other; it is false when an integer precision does not hold
// one of them.

#include <cstddef>
#include <cstdint>

#include "spatial/expr.h"
#include "spatial/precision.h"

namespace tw::spatial::evaluate {

// Points that one pass of a loop takes at most.
inline constexpr size_t kStrip = 256;

enum class Trouble : uint8_t { None, Overflow, DivisionByZero };

class Singles {
 public:
  using Value = float;
  explicit Singles(Precision /*accumulator*/) {}

  [[nodiscard]] Value constant(double value) const { return static_cast<float>(value); }
  // Whether elements of a page need no widening.
  [[nodiscard]] bool in_place(Precision from) const { return from == Precision::F32; }
  void load(Precision from, const std::byte* page, int64_t first, int64_t step, Value* out, size_t n) const;
  void gather(Precision from, const std::byte* page, const int64_t* offsets, Value* out, size_t n) const;
  [[nodiscard]] bool store(Precision to, const Value* values, std::byte* codes, size_t n) const;

  [[nodiscard]] Trouble binary(BinaryOp op, const Value* a, const Value* b, Value* out, size_t n) const;
  void unary(UnaryOp op, const Value* a, Value* out, size_t n) const;
  void rsqrt(const Value* a, uint64_t eps_nano, uint64_t over, Value* out, size_t n) const;
  // sum = sum + values[0] + values[1] + ..., from left to right. The others add products to every sum, in two
  // roundings each: one, or those of a[k * a_step] and b[k * b_step + lane] for k ascending.
  [[nodiscard]] Trouble add_up(const Value* values, size_t n, Value& sum) const;
  [[nodiscard]] Trouble add_products(const Value* a, const Value* b, Value* sums, size_t n) const;
  [[nodiscard]] Trouble contract(const Value* a, int64_t a_step, const Value* b, int64_t b_step, Value* sums,
                                 size_t inner, size_t n) const;
};

class Doubles {
 public:
  using Value = double;
  explicit Doubles(Precision accumulator) : accumulator_(accumulator) {}

  [[nodiscard]] Value constant(double value) const;
  [[nodiscard]] bool in_place(Precision) const { return false; }
  void load(Precision from, const std::byte* page, int64_t first, int64_t step, Value* out, size_t n) const;
  void gather(Precision from, const std::byte* page, const int64_t* offsets, Value* out, size_t n) const;
  [[nodiscard]] bool store(Precision to, const Value* values, std::byte* codes, size_t n) const;

  [[nodiscard]] Trouble binary(BinaryOp op, const Value* a, const Value* b, Value* out, size_t n) const;
  void unary(UnaryOp op, const Value* a, Value* out, size_t n) const;
  void rsqrt(const Value* a, uint64_t eps_nano, uint64_t over, Value* out, size_t n) const;
  [[nodiscard]] Trouble add_up(const Value* values, size_t n, Value& sum) const;
  [[nodiscard]] Trouble add_products(const Value* a, const Value* b, Value* sums, size_t n) const;
  [[nodiscard]] Trouble contract(const Value* a, int64_t a_step, const Value* b, int64_t b_step, Value* sums,
                                 size_t inner, size_t n) const;

 private:
  void round(Value* values, size_t n) const;

  Precision accumulator_;
};

class Integers {
 public:
  using Value = int64_t;
  explicit Integers(Precision /*accumulator*/ = Precision::I64) {}

  [[nodiscard]] Value constant(double value) const { return static_cast<int64_t>(value); }
  [[nodiscard]] bool in_place(Precision from) const { return from == Precision::I64; }
  void load(Precision from, const std::byte* page, int64_t first, int64_t step, Value* out, size_t n) const;
  void gather(Precision from, const std::byte* page, const int64_t* offsets, Value* out, size_t n) const;
  [[nodiscard]] bool store(Precision to, const Value* values, std::byte* codes, size_t n) const;

  [[nodiscard]] Trouble binary(BinaryOp op, const Value* a, const Value* b, Value* out, size_t n) const;
  void shift_right(const Value* a, uint32_t by, Value* out, size_t n) const;
  [[nodiscard]] Trouble add_up(const Value* values, size_t n, Value& sum) const;
  [[nodiscard]] Trouble add_products(const Value* a, const Value* b, Value* sums, size_t n) const;
  [[nodiscard]] Trouble contract(const Value* a, int64_t a_step, const Value* b, int64_t b_step, Value* sums,
                                 size_t inner, size_t n) const;
};

}  // namespace tw::spatial::evaluate
