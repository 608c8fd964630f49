#pragma once

// Arithmetic on sizes that come from a file: the result, or nothing when it does not fit 64 bits.

#include <cstdint>
#include <optional>

namespace tw {

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The least multiple of `unit` that is at least `value`. Requires unit > 0.
inline std::optional<uint64_t> checked_round_up(uint64_t value, uint64_t unit) {
  const uint64_t rest = value % unit;
  return rest == 0 ? std::optional<uint64_t>(value) : checked_add(value, unit - rest);
}

}  // namespace tw
