#pragma once

// Writes a step graph op by op: infers each result's shape, and refuses (TW_CHECK: a builder's caller is our own code)
// operands that do not fit.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/step_graph.h"

namespace tw::graph {

class GraphBuilder {
 public:
  GraphBuilder(std::string name, Form form);

  TensorId param(std::string name, uint32_t rows);  // i32, rows x 1
  TensorId constant(std::string name, uint32_t rows, uint32_t cols, Element element = Element::F32);
  TensorId state(std::string name, uint32_t rows, uint32_t cols, std::optional<uint32_t> sequence = {});
  TensorId table(std::string name, uint32_t rows, uint32_t cols);

  // Appends an op whose result is a new Activation named `name`; its shape follows from the op (see infer_result).
  // `operands` in the order of the op's declarations, kNoTensor (or a shorter list) for absent optional ones.
  TensorId add(std::string name, OpSpec spec, std::vector<TensorId> operands, std::optional<uint32_t> sequence = {});
  // SetRows: result is the table itself.
  void set_rows(TensorId table, TensorId src, TensorId index);
  void set_row_at(TensorId table, TensorId src, uint32_t row);

  [[nodiscard]] const Tensor& at(TensorId id) const { return graph_.at(id); }
  StepIo& io() { return graph_.io; }
  [[nodiscard]] StepGraph finish() &&;

 private:
  StepGraph graph_;
};

struct Shape {
  uint32_t rows = 0;
  uint32_t cols = 0;
  Element element = Element::F32;
  bool operator==(const Shape&) const = default;
};

// The shape of an op's result, or what is wrong with its operands: names the operand, found and expected.
Result<Shape> infer_result(const StepGraph& graph, const OpSpec& spec, const std::vector<TensorId>& operands);

}  // namespace tw::graph
