#pragma once

// Closed intervals of integers whose arithmetic saturates at the ends of int64_t: a bound that is not known exactly is
// never closer than the true one.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tw::spatial {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

constexpr int64_t saturated_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? kLeast : kMost;
}
constexpr int64_t saturated_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? kMost : kLeast;
}
constexpr int64_t negated(int64_t a) { return a == kLeast ? kMost : -a; }
constexpr int64_t to_signed(uint64_t value) {
  return value > static_cast<uint64_t>(kMost) ? kMost : static_cast<int64_t>(value);
}
// Requires divisor > 0.
constexpr int64_t floor_quotient(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

struct Interval {
  int64_t low = 0;
  int64_t high = 0;

  [[nodiscard]] constexpr bool empty() const { return low > high; }
  [[nodiscard]] constexpr bool contains(Interval o) const { return o.empty() || (low <= o.low && o.high <= high); }
  constexpr bool operator==(const Interval&) const = default;
};

constexpr Interval everything() { return {kLeast, kMost}; }
constexpr Interval meet(Interval a, Interval b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }
constexpr Interval hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
constexpr Interval operator+(Interval a, Interval b) {
  return {saturated_add(a.low, b.low), saturated_add(a.high, b.high)};
}
constexpr Interval operator-(Interval a) { return {negated(a.high), negated(a.low)}; }
constexpr Interval operator-(Interval a, Interval b) { return a + -b; }
constexpr Interval operator*(Interval a, Interval b) {
  const int64_t ends[] = {saturated_mul(a.low, b.low), saturated_mul(a.low, b.high), saturated_mul(a.high, b.low),
                          saturated_mul(a.high, b.high)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

}  // namespace tw::spatial
