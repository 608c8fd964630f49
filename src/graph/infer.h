#pragma once

// What an op makes of its operands: the shape of its result, and everything that its fields and operands must satisfy.

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/step_graph.h"

namespace tw::graph {

struct Shape {
  uint32_t rows = 0;
  uint32_t cols = 0;
  Element element = Element::F32;
  bool operator==(const Shape&) const = default;
};

// The shape of an op's result, or what is wrong with its operands: names the operand, found and expected.
Result<Shape> infer_result(const StepGraph& graph, const OpSpec& spec, const std::vector<TensorId>& operands);

// What is wrong with the values of an op's fields alone, a sentence each, in order of the fields.
// Infinite and undefined numbers are left to non_finite_fields.
std::vector<std::string> field_faults(const OpSpec& spec);
std::vector<std::string> non_finite_fields(const OpSpec& spec);

}  // namespace tw::graph
