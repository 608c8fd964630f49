#pragma once

// Writes a step graph op by op: infers each result's shape, and refuses (TW_CHECK: a builder's caller is our own code)
// operands that do not fit.

#include <optional>
#include <string>
#include <string_view>

#include "graph/infer.h"
#include "graph/step_graph.h"

namespace tw::graph {

class GraphBuilder {
 public:
  GraphBuilder(std::string name, Form form);

  TensorId param(std::string name, uint32_t rows);  // i32, rows x 1
  TensorId constant(std::string name, uint32_t rows, uint32_t cols, Element element = Element::F32);
  TensorId state(std::string name, uint32_t rows, uint32_t cols, std::optional<uint32_t> sequence = {},
                 Element element = Element::F32);
  TensorId table(std::string name, uint32_t rows, uint32_t cols, Element element = Element::F32);

  // Appends an op whose result is a new Activation named `name`; its shape follows from the op (see infer_result).
  // `operands` in the order of the op's declarations, kNoTensor (or a shorter list) for absent optional ones.
  TensorId add(std::string name, OpSpec spec, std::vector<TensorId> operands, std::optional<uint32_t> sequence = {});
  // SetRows: result is the table itself. `row` counts from 1.
  void set_rows(TensorId table, TensorId src, TensorId index);
  void set_row_at(TensorId table, TensorId src, uint32_t row);

  [[nodiscard]] const Tensor& at(TensorId id) const { return graph_.at(id); }
  StepIo& io() { return graph_.io; }
  // Checks the whole graph (TW_CHECK on a finding that is an error, verify.h).
  [[nodiscard]] StepGraph finish() &&;

 private:
  TensorId declare(Tensor tensor);
  Shape infer(std::string_view result, const OpSpec& spec, std::vector<TensorId>& operands) const;

  StepGraph graph_;
};

}  // namespace tw::graph
