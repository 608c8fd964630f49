#pragma once

// What a lowering knows of an operand's contents: what it starts from, and how large its integers can be. A fill
// becomes the init of the tensors that are declared for the operand.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "spatial/tensor.h"

namespace tw::spatial {

// Element e is (e mod modulus) + shift.
struct PatternFill {
  uint64_t modulus = 1;
  int64_t shift = 0;
  bool operator==(const PatternFill&) const = default;
};
// `base` in every element but those named, in the order in which they are set.
struct IntegerOverrides {
  int64_t base = 0;
  std::vector<std::pair<uint64_t, int64_t>> at;
  bool operator==(const IntegerOverrides&) const = default;
};
struct RealOverrides {
  double base = 0;
  std::vector<std::pair<uint64_t, double>> at;
  bool operator==(const RealOverrides&) const = default;
};
// Bound by name when the program runs; no magnitude of its integers is above `magnitude`.
struct GivenFill {
  uint64_t magnitude = 0;
  bool operator==(const GivenFill&) const = default;
};
// The result of an earlier op. Becomes External.
struct UnknownFill {
  uint64_t magnitude = 0;
  bool operator==(const UnknownFill&) const = default;
};

using Fill = std::variant<UnknownFill, GivenFill, IntegerInit, RealInit, PatternFill, IntegerOverrides, RealOverrides>;

// An operand of an op as its lowering sees it: the tensor's name, its fill.
struct Operand {
  std::string name;
  Fill fill = UnknownFill{};
  bool operator==(const Operand&) const = default;
};

// The init of a tensor of `elements` elements that is declared for the fill.
Init init_of(const Fill& fill, uint64_t elements);
// The largest magnitude of the fill's integers: what an index that is read from it can be. 0 for reals.
uint64_t magnitude_of(const Fill& fill);
// max(span, (magnitude + 1) * per_unit), saturating: the space of index arithmetic over `span` whose index is the
// fill's.
uint64_t index_space(uint64_t span, uint64_t per_unit, const Fill& fill);

}  // namespace tw::spatial
