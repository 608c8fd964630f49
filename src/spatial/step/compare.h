#pragma once

// Two sets of values of one tensor: where they differ most.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "graph/step_graph.h"

namespace tw::spatial::step {

struct Difference {
  std::string tensor;
  std::optional<graph::OpId> op;  // that made it; none of a state
  uint64_t element = 0;           // row-major number of the one that differs most
  double got = 0;
  double want = 0;
  double difference = 0;  // of that element; infinite when one of the two is no number and the other is
  double scale = 0;       // the largest magnitude that is wanted
  bool choice = false;    // of an arg-max: another number is another choice, not a distance

  // 0 when nothing differs; infinite when something does and the scale is 0.
  [[nodiscard]] double relative() const;
};

// Requires as many values of both.
Difference compare(std::string tensor, std::span<const double> got, std::span<const double> want);

// 0-based number of the first maximum, by a strict "greater" scan.
uint64_t first_maximum(std::span<const double> row);

}  // namespace tw::spatial::step
