#include "graph/builder.h"

#include <utility>

#include "base/check.h"
#include "graph/verify.h"

namespace tw::graph {

GraphBuilder::GraphBuilder(std::string name, Form form) {
  graph_.name = std::move(name);
  graph_.form = form;
}

TensorId GraphBuilder::declare(Tensor tensor) {
  TW_CHECK(tensor.rows > 0 && tensor.cols > 0, "tensor {} is {}, expected at least one row and column", tensor.name,
           shape_text(tensor));
  const TensorId id{static_cast<uint32_t>(graph_.tensors.size())};
  graph_.tensors.push_back(std::move(tensor));
  return id;
}

TensorId GraphBuilder::param(std::string name, uint32_t rows) {
  return declare({.name = std::move(name), .rows = rows, .cols = 1, .role = Role::Param, .element = Element::I32});
}

TensorId GraphBuilder::constant(std::string name, uint32_t rows, uint32_t cols, Element element) {
  return declare({.name = std::move(name), .rows = rows, .cols = cols, .role = Role::Constant, .element = element});
}

TensorId GraphBuilder::state(std::string name, uint32_t rows, uint32_t cols, std::optional<uint32_t> sequence,
                             Element element) {
  return declare({.name = std::move(name),
                  .rows = rows,
                  .cols = cols,
                  .role = Role::State,
                  .element = element,
                  .sequence = sequence});
}

TensorId GraphBuilder::table(std::string name, uint32_t rows, uint32_t cols, Element element) {
  return declare({.name = std::move(name), .rows = rows, .cols = cols, .role = Role::Table, .element = element});
}

Shape GraphBuilder::infer(std::string_view result, const OpSpec& spec, std::vector<TensorId>& operands) const {
  const size_t declared = operand_decls(spec).size();
  if (operands.size() < declared) operands.resize(declared, kNoTensor);
  const Result<Shape> shape = infer_result(graph_, spec, operands);
  TW_CHECK(shape.ok(), "op {} of graph {}: {}", result, graph_.name, to_text(shape.refusal()));
  return *shape;
}

TensorId GraphBuilder::add(std::string name, OpSpec spec, std::vector<TensorId> operands,
                           std::optional<uint32_t> sequence) {
  TW_CHECK(!std::holds_alternative<SetRows>(spec), "set_rows has no new result: use set_rows() for {}", name);
  const Shape shape = infer(name, spec, operands);
  const TensorId id = declare({.name = std::move(name),
                               .rows = shape.rows,
                               .cols = shape.cols,
                               .role = Role::Activation,
                               .element = shape.element,
                               .sequence = sequence});
  graph_.ops.push_back({spec, std::move(operands), id});
  return id;
}

void GraphBuilder::set_rows(TensorId table, TensorId src, TensorId index) {
  std::vector<TensorId> operands{table, src, index};
  infer("set_rows", SetRows{}, operands);
  graph_.ops.push_back({SetRows{}, std::move(operands), table});
}

void GraphBuilder::set_row_at(TensorId table, TensorId src, uint32_t row) {
  std::vector<TensorId> operands{table, src};
  infer("set_rows", SetRows{row}, operands);
  const uint64_t last = uint64_t{row} + at(src).rows - 1;
  TW_CHECK(row >= 1 && last <= at(table).rows, "rows {} to {} of table {}, which has {}", row, last, at(table).name,
           at(table).rows);
  graph_.ops.push_back({SetRows{row}, std::move(operands), table});
}

StepGraph GraphBuilder::finish() && {
  for (const Finding& finding : verify(graph_))
    TW_CHECK(finding.severity != Severity::Error, "graph {}: {}", graph_.name, to_text(graph_, finding));
  return std::move(graph_);
}

}  // namespace tw::graph
