#include "graph/step_graph.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/parse_number.h"

namespace tw::graph {

namespace {

// A whole decimal number of 32 bits, without sign or blanks.
std::optional<uint32_t> parse_count(std::string_view text) {
  uint32_t value = 0;
  return parse_number(text, value) ? std::optional(value) : std::nullopt;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::string to_text(const Form& form) {
  switch (form.kind) {
    case Form::Kind::Decode: return "decode";
    case Form::Kind::Chunk: return fmt::format("chunk:{}{}", form.rows, form.all_logits ? ":all" : "");
    case Form::Kind::Batch: return fmt::format("batch:{}", form.rows);
  }
  TW_CHECK(false, "form kind {}", static_cast<int>(form.kind));
}

std::optional<Form> parse_form(std::string_view text) {
  Form form;
  if (text == "decode") return form;
  if (take_prefix(text, "chunk:")) {
    form.kind = Form::Kind::Chunk;
    form.all_logits = take_suffix(text, ":all");
  } else if (take_prefix(text, "batch:")) {
    form.kind = Form::Kind::Batch;
  } else {
    return std::nullopt;
  }
  const std::optional<uint32_t> rows = parse_count(text);
  const bool batch = form.kind == Form::Kind::Batch;
  if (!rows || *rows < (batch ? 2U : 1U) || (!batch && *rows > kMaxChunkRows)) return std::nullopt;
  form.rows = *rows;
  return form;
}

std::string_view op_name(const OpSpec& spec) {
  return std::visit([](const auto& op) { return std::decay_t<decltype(op)>::kName; }, spec);
}

std::span<const OperandDecl> operand_decls(const OpSpec& spec) {
  return std::visit([](const auto& op) { return std::span<const OperandDecl>(std::decay_t<decltype(op)>::kOperands); },
                    spec);
}

TensorId operand(const Op& op, std::string_view name) {
  const std::span<const OperandDecl> decls = operand_decls(op.spec);
  for (size_t i = 0; i < decls.size() && i < op.operands.size(); ++i)
    if (decls[i].name == name) return op.operands[i];
  return kNoTensor;
}

std::string shape_text(const Tensor& tensor) {
  return fmt::format("{}x{} {}", tensor.rows, tensor.cols, tensor.element == Element::F32 ? "f32" : "i32");
}

}  // namespace tw::graph
