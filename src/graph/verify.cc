#include "graph/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "graph/infer.h"

namespace tw::graph {
namespace {

constexpr std::array kCodes{
    FindingCode{"G1", Severity::Error, "A tensor has a name of its own."},
    FindingCode{"G2", Severity::Error, "A tensor has at least one row and one column."},
    FindingCode{"G3", Severity::Error, "An op has an operand for each that it declares."},
    FindingCode{"G4", Severity::Error, "An operand that is not optional is present."},
    FindingCode{"G5", Severity::Error, "Operands, results and io name tensors of the graph."},
    FindingCode{"G6", Severity::Error, "An activation is read only after the op that writes it."},
    FindingCode{"G7", Severity::Error, "An activation is the result of exactly one op."},
    FindingCode{"G8", Severity::Error, "A result is an activation, never a param, constant, state or table."},
    FindingCode{"G9", Severity::Error, "What an op updates is a state or a table."},
    FindingCode{"G10", Severity::Error, "The result of set_rows is its table."},
    FindingCode{"G11", Severity::Error, "The operands of an op fit it and each other."},
    FindingCode{"G12", Severity::Error, "A result has the shape and element that follow from the operands."},
    FindingCode{"G13", Severity::Error, "The tensors of the io have the roles and shapes that the form asks for."},
    FindingCode{"G14", Severity::Error, "A literal row lies within its table, and stands only where no index does."},
    FindingCode{"G15", Severity::Error, "The fields of an op are within their ranges."},
    FindingCode{"G16", Severity::Error, "The numbers among the fields of an op are finite."},
    FindingCode{"G17", Severity::Warning, "Every row of a table is set before it is read."},
    FindingCode{"G18", Severity::Warning, "Every tensor is used."},
    FindingCode{"G19", Severity::Error, "The io has as many sequences as the form, and the form is possible."},
    FindingCode{"G20", Severity::Error, "A tensor's sequence is one of the form's."},
    FindingCode{"G21", Severity::Error, "What belongs to one sequence is not made of another's."},
};

bool is_carrier(Role role) { return role == Role::State || role == Role::Table; }

std::string_view role_text(Role role) {
  switch (role) {
    case Role::Param: return "a param";
    case Role::State: return "a state";
    case Role::Table: return "a table";
    case Role::Constant: return "a constant";
    case Role::Activation: return "an activation";
  }
  TW_CHECK(false, "role {}", static_cast<int>(role));
}

uint32_t sequences_of(const Form& form) { return form.kind == Form::Kind::Batch ? form.rows : 1; }

// Rows of a table, counted from 1, as runs that neither overlap nor touch: first row to the one past the last.
class RowSet {
 public:
  void add(uint64_t first, uint64_t end) {
    auto run = runs_.lower_bound(first);
    if (run != runs_.begin() && std::prev(run)->second >= first) --run;
    while (run != runs_.end() && run->first <= end) {
      first = std::min(first, run->first);
      end = std::max(end, run->second);
      run = runs_.erase(run);
    }
    runs_[first] = end;
  }
  // The first row of the run that is not in the set, if there is one.
  [[nodiscard]] std::optional<uint64_t> missing(uint64_t first, uint64_t end) const {
    const auto after = runs_.upper_bound(first);
    const uint64_t reached = after == runs_.begin() ? first : std::max(first, std::prev(after)->second);
    return reached < end ? std::optional(reached) : std::nullopt;
  }

 private:
  std::map<uint64_t, uint64_t> runs_;
};

class Verifier {
 public:
  explicit Verifier(const StepGraph& graph)
      : g_(graph),
        written_(graph.tensors.size()),
        used_(graph.tensors.size()),
        read_early_(graph.tensors.size()),
        rows_set_(graph.tensors.size()) {}

  std::vector<Finding> run() {
    check_names();
    check_tensors();
    for (uint32_t i = 0; i < g_.ops.size(); ++i) check_op(OpId{i});
    check_producers();
    check_form();
    check_io();
    check_used();
    return std::move(findings_);
  }

 private:
  void add(std::string_view code, std::optional<OpId> op, std::optional<TensorId> tensor, std::string text) {
    const auto* known = std::ranges::find(kCodes, code, &FindingCode::code);
    TW_CHECK(known != std::ranges::end(kCodes), "no finding has the code {}", code);
    findings_.push_back({known->code, known->severity, op, tensor, std::move(text)});
  }
  [[nodiscard]] bool known(TensorId id) const { return index(id) < g_.tensors.size(); }

  void check_names() {
    std::unordered_map<std::string_view, uint32_t> first;
    for (uint32_t i = 0; i < g_.tensors.size(); ++i) {
      const std::string_view name = g_.tensors[i].name;
      if (name.empty()) {
        add("G1", {}, TensorId{i}, fmt::format("tensor {} has no name", i));
      } else if (const auto [at, fresh] = first.emplace(name, i); !fresh) {
        add("G1", {}, TensorId{i}, fmt::format("tensor {} has the name of tensor {}", i, at->second));
      }
    }
  }

  void check_tensors() {
    const uint32_t sequences = sequences_of(g_.form);
    for (uint32_t i = 0; i < g_.tensors.size(); ++i) {
      const Tensor& tensor = g_.tensors[i];
      if (tensor.rows == 0 || tensor.cols == 0)
        add("G2", {}, TensorId{i}, fmt::format("is {}, expected at least one row and column", shape_text(tensor)));
      if (tensor.sequence && *tensor.sequence >= sequences)
        add("G20", {}, TensorId{i},
            fmt::format("is of sequence {}, the form {} has {}", *tensor.sequence, to_text(g_.form), sequences));
    }
  }

  // ---- ops ----

  void check_op(OpId id) {
    const Op& op = g_.at(id);
    const bool fields_hold = check_fields(id);
    const bool whole = check_operands(id);
    if (whole) {
      check_reads(id);
      check_updates(id);
    }
    // The result counts as written even when the operands are wrong, or each of its readers would be a finding too.
    if (!check_result(id) || !whole) return;
    if (fields_hold && shapes_possible(op)) check_shapes(id);
    check_literal_row(id);
    check_sequences(id);
  }

  bool check_fields(OpId id) {
    const std::vector<std::string> faults = field_faults(g_.at(id).spec), infinite = non_finite_fields(g_.at(id).spec);
    for (const std::string& fault : faults) add("G15", id, {}, fault);
    for (const std::string& fault : infinite) add("G16", id, {}, fault);
    return faults.empty();
  }

  // Count, presence and ids. False when the operands cannot be looked at further.
  bool check_operands(OpId id) {
    const Op& op = g_.at(id);
    const std::span<const OperandDecl> decls = operand_decls(op.spec);
    if (op.operands.size() != decls.size()) {
      add("G3", id, {}, fmt::format("has {} operands, expected {}", op.operands.size(), decls.size()));
      return false;
    }
    bool whole = true;
    for (size_t i = 0; i < decls.size(); ++i) {
      const TensorId operand = op.operands[i];
      const bool absent = operand == kNoTensor;
      if (absent && !decls[i].optional) add("G4", id, {}, fmt::format("operand {} is absent", decls[i].name));
      if (!absent && !known(operand))
        add("G5", id, {},
            fmt::format("operand {} is tensor {}, the graph has {}", decls[i].name, index(operand), g_.tensors.size()));
      if (absent ? !decls[i].optional : !known(operand)) whole = false;
      if (!absent && known(operand)) used_[index(operand)] = true;
    }
    return whole;
  }

  void check_reads(OpId id) {
    const Op& op = g_.at(id);
    const std::span<const OperandDecl> decls = operand_decls(op.spec);
    for (size_t i = 0; i < decls.size(); ++i) {
      if (op.operands[i] == kNoTensor || decls[i].access == Access::Update) continue;
      const TensorId operand = op.operands[i];
      const Tensor& tensor = g_.at(operand);
      if (tensor.role == Role::Activation && written_[index(operand)] == 0) {
        read_early_[index(operand)] = true;
        add("G6", id, operand,
            fmt::format("operand {} ({}) is read before an op writes it", decls[i].name, tensor.name));
      }
      if (tensor.role == Role::Table) check_rows_set(id, operand);
    }
  }

  void check_updates(OpId id) {
    const Op& op = g_.at(id);
    const std::span<const OperandDecl> decls = operand_decls(op.spec);
    for (size_t i = 0; i < decls.size(); ++i) {
      if (decls[i].access != Access::Update) continue;
      const Tensor& tensor = g_.at(op.operands[i]);
      if (!is_carrier(tensor.role))
        add("G9", id, op.operands[i],
            fmt::format("updates operand {} ({}), {}, expected a state or a table", decls[i].name, tensor.name,
                        role_text(tensor.role)));
    }
  }

  // Shapes are compared only where G2 does not already say that there is none.
  bool shapes_possible(const Op& op) const {
    for (const TensorId operand : op.operands)
      if (operand != kNoTensor && g_.at(operand).size() == 0) return false;
    return g_.at(op.result).size() != 0;
  }

  void check_shapes(OpId id) {
    const Op& op = g_.at(id);
    const Result<Shape> shape = infer_result(g_, op.spec, op.operands);
    if (!shape) {
      add("G11", id, {}, shape.refusal().reason);
      return;
    }
    const Tensor& result = g_.at(op.result);
    if (!std::holds_alternative<SetRows>(op.spec) && *shape != Shape{result.rows, result.cols, result.element})
      add("G12", id, op.result,
          fmt::format("its result is {}, expected {}", shape_text(result),
                      shape_text({.name = {}, .rows = shape->rows, .cols = shape->cols, .element = shape->element})));
  }

  // False when there is no such tensor.
  bool check_result(OpId id) {
    const Op& op = g_.at(id);
    if (!known(op.result)) {
      add("G5", id, {}, fmt::format("its result is tensor {}, the graph has {}", index(op.result), g_.tensors.size()));
      return false;
    }
    const Tensor& result = g_.at(op.result);
    if (std::holds_alternative<SetRows>(op.spec)) {
      if (op.operands.empty() || op.result != op.operands[0])
        add("G10", id, op.result, fmt::format("its result is {}, expected its table", result.name));
    } else if (result.role != Role::Activation) {
      add("G8", id, op.result, fmt::format("writes {}, {}", result.name, role_text(result.role)));
    } else if (++written_[index(op.result)] == 2) {
      add("G7", id, op.result, fmt::format("writes {}, which an earlier op writes too", result.name));
    }
    return true;
  }

  void check_literal_row(OpId id) {
    const Op& op = g_.at(id);
    const auto* gather = std::get_if<RowGather>(&op.spec);
    const auto* set = std::get_if<SetRows>(&op.spec);
    if (!gather && !set) return;
    const uint32_t row = gather ? gather->row : set->row;
    const Tensor& table = g_.at(op.operands[0]);
    if (operand(op, "index") != kNoTensor) {
      if (row != 0) add("G14", id, {}, fmt::format("has both an index and the literal row {}", row));
      if (set && table.role == Role::Table) rows_set_[index(op.operands[0])].add(1, uint64_t{table.rows} + 1);
      return;
    }
    const uint64_t count = set ? g_.at(op.operands[1]).rows : 1;
    if (row == 0 || row + count - 1 > table.rows) {
      add("G14", id, op.operands[0],
          fmt::format("rows {} to {} of {}, which has rows 1 to {}", row, row + count - 1, table.name, table.rows));
    } else if (set) {
      rows_set_[index(op.operands[0])].add(row, row + count);
    }
  }

  void check_rows_set(OpId id, TensorId table) {
    const auto* gather = std::get_if<RowGather>(&g_.at(id).spec);
    const bool literal = gather && operand(g_.at(id), "index") == kNoTensor;
    const uint64_t first = literal ? gather->row : 1, last = literal ? gather->row : g_.at(table).rows;
    if (const std::optional<uint64_t> row = rows_set_[index(table)].missing(first, last + 1))
      add("G17", id, table, fmt::format("reads row {} of table {}, which no op has set", *row, g_.at(table).name));
  }

  void check_sequences(OpId id) {
    const Op& op = g_.at(id);
    const Tensor& result = g_.at(op.result);
    std::vector<TensorId> all = op.operands;
    std::optional<uint32_t> one = result.sequence;
    for (const TensorId operand : all) {
      if (operand == kNoTensor || !g_.at(operand).sequence) continue;
      const uint32_t other = *g_.at(operand).sequence;
      // A table or row that all sequences share may take in what is one sequence's; that is how a batch is stacked.
      if (one && *one != other)
        add("G21", id, operand,
            fmt::format("mixes sequence {} with {} of sequence {}", *one, g_.at(operand).name, other));
      else if (!one && !std::holds_alternative<SetRows>(op.spec))
        one = other;
    }
  }

  void check_producers() {
    // One that is read is reported where it is read.
    for (uint32_t i = 0; i < g_.tensors.size(); ++i)
      if (g_.tensors[i].role == Role::Activation && written_[i] == 0 && !read_early_[i])
        add("G7", {}, TensorId{i}, fmt::format("activation {} is the result of no op", g_.tensors[i].name));
  }
  // ---- form and io ----

  void check_form() {
    const Form& form = g_.form;
    const bool possible = form.kind == Form::Kind::Decode  ? form.rows == 1
                          : form.kind == Form::Kind::Chunk ? form.rows >= 1 && form.rows <= kMaxChunkRows
                                                           : form.rows >= 2;
    if (!possible)
      add("G19", {}, {},
          fmt::format(
              "the form {} has {} rows, expected 1 for a decode step, 1 to {} for a chunk, at least 2 for a batch",
              to_text(form), form.rows, kMaxChunkRows));
    if (form.all_logits && form.kind != Form::Kind::Chunk)
      add("G19", {}, {}, fmt::format("the form {} asks for the logits of every row, only a chunk may", to_text(form)));
    const size_t sequences = g_.io.sequences.size();
    const bool plain = g_.io.tokens == kNoTensor && sequences == 0;  // a graph that is not a whole step
    if (!plain && sequences != sequences_of(form))
      add("G19", {}, {},
          fmt::format("the io has {} sequences, the form {} has {}", sequences, to_text(form), sequences_of(form)));
  }

  void check_io() {
    if (g_.io.tokens == kNoTensor && g_.io.sequences.empty()) return;
    check_io_tensor("tokens", g_.io.tokens, Role::Param, g_.form.rows, 1, Element::I32);
    const uint32_t logit_rows = g_.form.all_logits ? g_.form.rows : 1;
    for (const SequenceIo& io : g_.io.sequences) {
      check_io_tensor("position", io.position, Role::Param, 1, 1, Element::I32);
      check_io_tensor("logits", io.logits, Role::Activation, logit_rows, {}, {});
      check_io_tensor("next", io.next, Role::Activation, logit_rows, 1, Element::I32);
    }
  }

  void check_io_tensor(std::string_view what, TensorId id, Role role, uint32_t rows, std::optional<uint32_t> cols,
                       std::optional<Element> element) {
    if (id == kNoTensor) {
      add("G13", {}, {}, fmt::format("the io has no {}", what));
      return;
    }
    if (!known(id)) {
      add("G5", {}, {},
          fmt::format("the {} of the io is tensor {}, the graph has {}", what, index(id), g_.tensors.size()));
      return;
    }
    used_[index(id)] = true;
    const Tensor& t = g_.at(id);
    const bool fits =
        t.role == role && t.rows == rows && (!cols || t.cols == *cols) && (!element || t.element == *element);
    if (!fits)
      add("G13", {}, id,
          fmt::format("the {} of the io is {} of {}, expected {} of {} rows{}", what, role_text(t.role), shape_text(t),
                      role_text(role), rows, cols ? fmt::format(" and {} column, i32", *cols) : ""));
  }

  void check_used() {
    for (uint32_t i = 0; i < g_.tensors.size(); ++i)
      if (!used_[i])
        add("G18", {}, TensorId{i},
            fmt::format("{} {} is not used", role_text(g_.tensors[i].role), g_.tensors[i].name));
  }

  const StepGraph& g_;
  std::vector<uint32_t> written_;  // ops that wrote each tensor so far
  std::vector<bool> used_;
  std::vector<bool> read_early_;
  std::vector<RowSet> rows_set_;  // of each table
  std::vector<Finding> findings_;
};

// What a finding is about, for a reader: "row_norm blk.0.attn_norm", "blk.0.attn_norm", "graph llama".
std::string subject(const StepGraph& graph, const Finding& finding) {
  if (finding.op) {
    const Op& op = graph.at(*finding.op);
    const bool named = index(op.result) < graph.tensors.size();
    return fmt::format("{} {}", op_name(op.spec),
                       named ? graph.at(op.result).name : fmt::format("op {}", index(*finding.op)));
  }
  return finding.tensor ? graph.at(*finding.tensor).name : fmt::format("graph {}", graph.name);
}

}  // namespace

std::span<const FindingCode> finding_codes() { return kCodes; }

std::vector<Finding> verify(const StepGraph& graph) { return Verifier(graph).run(); }

std::string to_text(const StepGraph& graph, const Finding& finding) {
  return fmt::format("{} {}: {}", finding.code, subject(graph, finding), finding.text);
}

Refusal to_refusal(const StepGraph& graph, const Finding& finding) {
  return refuse(RefusalKind::Malformed, subject(graph, finding), fmt::format("{} ({})", finding.text, finding.code));
}

}  // namespace tw::graph
