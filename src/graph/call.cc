#include "graph/call.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"

namespace tw::graph {

size_t Call::position(std::string_view operand) const {
  const std::span<const OperandDecl> decls = operand_decls(op_.spec);
  for (size_t i = 0; i < decls.size(); ++i)
    if (decls[i].name == operand) return i;
  TW_CHECK(false, "op {} declares no operand {}", op_name(op_.spec), operand);
}

bool Call::has(std::string_view operand) const { return op_.operands[position(operand)] != kNoTensor; }

Matrix Call::operator[](std::string_view operand) const {
  const size_t i = position(operand);
  const Tensor& tensor = graph_.at(op_.operands[i]);
  return {values_[i], tensor.rows, tensor.cols};
}

MutableMatrix Call::update(std::string_view operand) const {
  const size_t i = position(operand);
  TW_CHECK(operand_decls(op_.spec)[i].access == Access::Update, "operand {} is only read", operand);
  const Tensor& tensor = graph_.at(op_.operands[i]);
  return {updated_, tensor.rows, tensor.cols};
}

MutableMatrix Call::out() const {
  const Tensor& tensor = graph_.at(op_.result);
  return {out_, tensor.rows, tensor.cols};
}

Result<uint64_t> Call::item(std::string_view operand, uint64_t i, uint64_t last) const {
  const Matrix items = (*this)[operand];
  const double value = items.data[i];
  if (value >= 1 && value <= static_cast<double>(last) && value == std::floor(value))
    return static_cast<uint64_t>(value);
  return refuse(RefusalKind::Malformed, graph_.at(op_.operands[position(operand)]).name,
                fmt::format("item {} is {}, expected 1 to {} ({} of {}, operand {})", i + 1, value, last,
                            op_name(op_.spec), graph_.at(op_.result).name, operand));
}

Result<uint64_t> Call::item_or(std::string_view operand, uint64_t otherwise, uint64_t last) const {
  if (has(operand)) return item(operand, 0, last);
  if (otherwise >= 1 && otherwise <= last) return otherwise;
  return refuse_result(RefusalKind::Malformed, fmt::format("row {}, expected 1 to {}", otherwise, last));
}

Refusal Call::refuse_result(RefusalKind kind, std::string reason) const {
  return refuse(kind, graph_.at(op_.result).name, fmt::format("{}: {}", op_name(op_.spec), reason));
}

}  // namespace tw::graph
