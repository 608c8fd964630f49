#include <fmt/format.h>

#include "base/line_writer.h"
#include "graph/field_text.h"
#include "graph/infer.h"
#include "graph/lexer.h"
#include "graph/text.h"

namespace tw::graph {
namespace {

class Printer : LineWriter {
 public:
  Printer(const StepGraph& graph, const Constants* constants)
      : g_(graph), constants_(constants), made_(graph.tensors.size()) {}

  std::string run() {
    line("graph {} {}", name_text(g_.name), to_text(g_.form));
    for (const Op& op : g_.ops) print_op(op);
    declare_until(static_cast<uint32_t>(g_.tensors.size()));
    print_io();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool known(TensorId id) const { return index(id) < g_.tensors.size(); }
  [[nodiscard]] std::string name(TensorId id) const { return known(id) ? name_text(g_.at(id).name) : "?"; }

  // ---- declarations ----

  // Tensors come into being in the order of their ids, so those before `end` are declared first.
  void declare_until(uint32_t end) {
    for (; next_ < end; ++next_)
      if (!made_[next_]) declare(TensorId{next_});
  }

  void declare(TensorId id) {
    const Tensor& tensor = g_.at(id);
    made_[index(id)] = true;
    put("{} {} ", enum_name(tensor.role), name_text(tensor.name));
    if (tensor.role == Role::Param && tensor.cols == 1)
      put("{}", tensor.rows);
    else
      put("{}x{}", tensor.rows, tensor.cols);
    const Element usual = tensor.role == Role::Param ? Element::I32 : Element::F32;
    if (tensor.element != usual) put(" {}", enum_name(tensor.element));
    if (tensor.sequence) put(" sequence={}", *tensor.sequence);
    if (tensor.role == Role::Constant && constants_) print_values(tensor);
    out_ += '\n';
  }

  void print_values(const Tensor& tensor) {
    const auto constant = constants_->find(tensor.name);
    if (constant == constants_->end()) return;
    const auto* values = std::get_if<Values>(&constant->second);
    if (!values) return;
    if (tensor.element == Element::F32 && values->f32) print_matrix(tensor, *values->f32);
    if (tensor.element == Element::I32 && values->i32) print_matrix(tensor, *values->i32);
  }

  template <class T>
  void print_matrix(const Tensor& tensor, const std::vector<T>& values) {
    if (values.size() != tensor.size()) return;
    put(" = [");
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) put("{}", i % tensor.cols == 0 ? "; " : " ");
      put("{}", values[i]);
    }
    put("]");
  }

  // ---- ops ----

  void print_op(const Op& op) {
    const bool makes = makes_result(op);
    if (makes) declare_until(index(op.result));
    // What the op names must have been declared.
    for (const TensorId id : op.operands)
      if (known(id) && !made_[index(id)]) declare_until(index(id) + 1);
    if (!makes && known(op.result)) declare_until(made_[index(op.result)] ? 0 : index(op.result) + 1);
    if (!std::holds_alternative<SetRows>(op.spec)) put("{} = ", name(op.result));
    print_call(op);
    print_fields(op.spec);
    if (makes) {
      made_[index(op.result)] = true;
      if (g_.at(op.result).sequence) put(" sequence={}", *g_.at(op.result).sequence);
      put("  # {}", shape_text(g_.at(op.result)));
    }
    out_ += '\n';
  }

  // Whether reading the op makes just the tensor that its result is; otherwise that is declared beforehand.
  [[nodiscard]] bool makes_result(const Op& op) const {
    if (std::holds_alternative<SetRows>(op.spec) || !known(op.result)) return false;
    const Tensor& result = g_.at(op.result);
    if (made_[index(op.result)] || index(op.result) < next_ || result.role != Role::Activation) return false;
    for (const TensorId id : op.operands)
      if (id != kNoTensor && (!known(id) || (!made_[index(id)] && index(id) >= index(op.result)))) return false;
    const Result<Shape> shape = infer_result(g_, op.spec, op.operands);
    return shape && *shape == Shape{result.rows, result.cols, result.element};
  }

  void print_call(const Op& op) {
    const std::span<const OperandDecl> decls = operand_decls(op.spec);
    put("{}(", op_name(op.spec));
    std::string_view separator;
    for (size_t i = 0; i < op.operands.size() && i < decls.size(); ++i) {
      if (op.operands[i] == kNoTensor) continue;
      put("{}{}={}", separator, decls[i].name, name(op.operands[i]));
      separator = ", ";
    }
    put(")");
  }

  void print_fields(const OpSpec& spec) {
    std::visit(
        [&](const auto& op) {
          for_each_field<std::decay_t<decltype(op)>>(
              [&](const auto& field) { put(" {}={}", field.name, value_text(op.*field.member)); });
        },
        spec);
  }

  // ---- io ----

  void print_io() {
    if (g_.io.tokens != kNoTensor) line("io tokens={}", name(g_.io.tokens));
    for (const SequenceIo& io : g_.io.sequences) {
      put("io sequence");
      if (io.position != kNoTensor) put(" position={}", name(io.position));
      if (io.logits != kNoTensor) put(" logits={}", name(io.logits));
      if (io.next != kNoTensor) put(" next={}", name(io.next));
      out_ += '\n';
    }
  }

  const StepGraph& g_;
  const Constants* constants_;
  std::vector<bool> made_;
  uint32_t next_ = 0;  // tensors before it are made
};

}  // namespace

std::string print(const StepGraph& graph) { return Printer(graph, nullptr).run(); }
std::string print(const StepGraph& graph, const Constants& constants) { return Printer(graph, &constants).run(); }

}  // namespace tw::graph
