#include "graph/evaluate.h"

#include <fmt/format.h>

#include <limits>

#include "base/check.h"
#include "gguf/format.h"
#include "graph/call.h"
#include "graph/functions.h"
#include "graph/verify.h"

namespace tw::graph {
namespace {

// ---- constants ----

// The stored rows side by side, or as the columns of the tensor.
std::vector<double> widen(const Rows& rows, bool by_column) {
  std::vector<double> values(rows.count * rows.row_values), row(rows.row_values);
  for (uint64_t r = 0; r < rows.count; ++r) {
    gguf::dequantize_exact(rows.format, rows.row(r), row.data(), rows.row_values);
    for (uint64_t i = 0; i < row.size(); ++i) values[by_column ? i * rows.count + r : r * rows.row_values + i] = row[i];
  }
  return values;
}

Result<std::vector<double>> convert(const Tensor& tensor, const Rows& rows, bool by_column) {
  const uint64_t count = by_column ? tensor.cols : tensor.rows, values = by_column ? tensor.rows : tensor.cols;
  if (rows.count != count || rows.row_values != values)
    return refuse(RefusalKind::Malformed, tensor.name,
                  fmt::format("the constant holds {} rows of {} values, expected {} of {} for {}{}", rows.count,
                              rows.row_values, count, values, shape_text(tensor), by_column ? " by column" : ""));
  return widen(rows, by_column);
}

Result<std::vector<double>> convert(const Tensor& tensor, const Values& values, bool) {
  std::vector<double> converted;
  if (tensor.element == Element::F32 && values.f32) converted.assign(values.f32->begin(), values.f32->end());
  if (tensor.element == Element::I32 && values.i32) converted.assign(values.i32->begin(), values.i32->end());
  if (converted.size() != tensor.size())
    return refuse(RefusalKind::Malformed, tensor.name,
                  fmt::format("the constant holds {} values of its kind, expected {} for {}", converted.size(),
                              tensor.size(), shape_text(tensor)));
  return converted;
}

// ---- the values an op reads ----

Result<const std::vector<double>*> stored_values(const Tensor& tensor, Environment& environment) {
  const auto found = environment.values.find(tensor.name);
  if (found == environment.values.end())
    return refuse(RefusalKind::Missing, tensor.name, "its values are not set",
                  tensor.role == Role::Param ? "Set the params of the step before it is evaluated." : "");
  if (found->second.size() != tensor.size())
    return refuse(
        RefusalKind::Malformed, tensor.name,
        fmt::format("has {} values, expected {} for {}", found->second.size(), tensor.size(), shape_text(tensor)));
  return &found->second;
}

Result<void> check_integers(const Tensor& tensor, const std::vector<double>& values) {
  if (tensor.element != Element::I32) return {};
  for (size_t i = 0; i < values.size(); ++i)
    if (!as_i32(values[i]))
      return refuse(RefusalKind::Malformed, tensor.name,
                    fmt::format("item {} is {}, expected an i32", i + 1, values[i]));
  return {};
}

Result<void> evaluate_one(const StepGraph& graph, const Op& op, Environment& environment) {
  const std::span<const OperandDecl> decls = operand_decls(op.spec);
  std::vector<const double*> operands(decls.size());
  double* updated = nullptr;
  for (size_t i = 0; i < decls.size(); ++i) {
    if (op.operands[i] == kNoTensor) continue;
    const Tensor& tensor = graph.at(op.operands[i]);
    const bool constant = tensor.role == Role::Constant;
    TW_TRY(const std::vector<double>* values,
           constant ? environment.constants->get(tensor, stored_by_column(op.spec, decls[i].name))
                    : stored_values(tensor, environment));
    if (decls[i].access == Access::Update) updated = environment.values.at(tensor.name).data();
    // A table is read through the rows that were written; its other rows are undefined, integers or not.
    if (tensor.role != Role::Table) TW_TRY_VOID(check_integers(tensor, *values));
    operands[i] = values->data();
  }
  const Tensor& result = graph.at(op.result);
  const bool writes_table = std::holds_alternative<SetRows>(op.spec);
  std::vector<double> out(writes_table ? 0 : result.size());
  Call call(graph, op, std::move(operands), updated, out.data());
  TW_TRY_VOID(std::visit([&](const auto& spec) { return evaluate_op(spec, call); }, op.spec));
  if (!writes_table) environment.values[result.name] = std::move(out);
  return {};
}

// More doubles than this are no reference's business (16 GiB); the sizes of a graph may be anything.
constexpr uint64_t kMostValues = uint64_t{1} << 31;

Result<void> check_size(const StepGraph& graph) {
  uint64_t values = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.size() > kMostValues - values)
      return refuse(
          RefusalKind::TooLarge, tensor.name,
          fmt::format("with this tensor ({}) the graph has more than {} values", shape_text(tensor), kMostValues));
    values += tensor.size();
  }
  return {};
}

void prepare(const StepGraph& graph, Environment& environment) {
  for (const Tensor& tensor : graph.tensors) {
    // A row that is read before it is written shows as undefined.
    if (tensor.role == Role::Table)
      environment.values[tensor.name].assign(tensor.size(), std::numeric_limits<double>::quiet_NaN());
    if (tensor.role == Role::State) environment.values.try_emplace(tensor.name, tensor.size(), 0.0);
  }
}

}  // namespace

bool stored_by_column(const OpSpec& spec, std::string_view operand) {
  return (std::holds_alternative<Matmul>(spec) && operand == "w") ||
         (std::holds_alternative<Moe>(spec) && operand == "router");
}

Result<const std::vector<double>*> ConstantValues::get(const Tensor& tensor, bool by_column) {
  const auto constant = constants_.find(tensor.name);
  if (constant == constants_.end()) return refuse(RefusalKind::Missing, tensor.name, "the constant has no values");
  // Plain values are in the tensor's own shape, whoever reads them.
  const Key key{tensor.name, by_column && std::holds_alternative<Rows>(constant->second)};
  auto found = converted_.find(key);
  if (found == converted_.end()) {
    TW_TRY(std::vector<double> values,
           std::visit([&](const auto& c) { return convert(tensor, c, key.second); }, constant->second));
    found = converted_.emplace(key, std::move(values)).first;
  }
  if (found->second.size() != tensor.size())
    return refuse(RefusalKind::Malformed, tensor.name,
                  fmt::format("the constant holds {} values, expected {} for {}", found->second.size(), tensor.size(),
                              shape_text(tensor)));
  return &found->second;
}

const std::vector<double>& Environment::at(const Tensor& tensor) const {
  const auto found = values.find(tensor.name);
  TW_CHECK(found != values.end(), "tensor {} has no values", tensor.name);
  return found->second;
}

Environment make_environment(const Constants& constants) {
  Environment environment;
  environment.constants = std::make_shared<ConstantValues>(constants);
  return environment;
}

Result<void> evaluate(const StepGraph& graph, Environment& environment) {
  for (const Finding& finding : verify(graph))
    if (finding.severity == Severity::Error) return to_refusal(graph, finding);
  TW_TRY_VOID(check_size(graph));
  prepare(graph, environment);
  for (const Op& op : graph.ops) TW_TRY_VOID(evaluate_one(graph, op, environment));
  return {};
}

Result<void> set_inputs(const StepGraph& graph, Environment& environment, std::span<const int32_t> tokens,
                        std::span<const uint32_t> positions) {
  if (graph.io.tokens == kNoTensor || positions.size() != graph.io.sequences.size())
    return refuse(RefusalKind::Usage, graph.name,
                  fmt::format("{} positions, expected one for each of {} sequences, and tokens", positions.size(),
                              graph.io.sequences.size()));
  const Tensor& input = graph.at(graph.io.tokens);
  if (tokens.size() != input.size())
    return refuse(RefusalKind::Usage, input.name, fmt::format("{} tokens, expected {}", tokens.size(), input.size()));
  environment.values[input.name].assign(tokens.begin(), tokens.end());
  for (size_t s = 0; s < positions.size(); ++s) {
    const TensorId position = graph.io.sequences[s].position;
    environment.values[graph.at(position).name].assign(1, positions[s]);
  }
  return {};
}

std::string_view shared_name(const Tensor& tensor) {
  std::string_view name = tensor.name;
  if (!tensor.sequence) return name;
  const std::string suffix = fmt::format("_s{}", *tensor.sequence);
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

Result<void> copy_states(const SequenceOf& from, const Environment& from_values, const SequenceOf& to,
                         Environment& to_values) {
  std::map<std::string_view, const Tensor*> sources;
  for (const Tensor& tensor : from.graph.tensors)
    if (tensor.role == Role::State && tensor.sequence == from.sequence) sources[shared_name(tensor)] = &tensor;
  for (const Tensor& target : to.graph.tensors) {
    if (target.role != Role::State || target.sequence != to.sequence) continue;
    const auto source = sources.find(shared_name(target));
    if (source == sources.end())
      return refuse(RefusalKind::Missing, target.name, fmt::format("graph {} has no such state", from.graph.name));
    const Tensor& tensor = *source->second;
    if (tensor.rows != target.rows || tensor.cols != target.cols || tensor.element != target.element)
      return refuse(
          RefusalKind::Conflict, target.name,
          fmt::format("is {}, that of graph {} is {}", shape_text(target), from.graph.name, shape_text(tensor)));
    const auto values = from_values.values.find(tensor.name);
    to_values.values[target.name] =
        values == from_values.values.end() ? std::vector<double>(target.size()) : values->second;
  }
  return {};
}

}  // namespace tw::graph
