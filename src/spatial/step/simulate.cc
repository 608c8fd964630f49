#include "spatial/step/simulate.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>

#include "graph/evaluate.h"
#include "spatial/certify/certify_step.h"
#include "spatial/evaluate/composed.h"

namespace tw::spatial::step {

// A storage that is bound from outside, and the tensor of the graph that it holds.
struct BoundStorage {
  Tensor stored;
  graph::TensorId tensor;
};

namespace {

using evaluate::Memory;
using graph::Role;

Result<void> set(Memory& memory, const Tensor& stored, std::span<const double> values) {
  if (is_real(stored.dtype)) return memory.set(stored, values);
  const std::vector<int64_t> whole(values.begin(), values.end());
  return memory.set(stored, std::span<const int64_t>(whole));
}

Result<std::vector<double>> values_of(const Memory& memory, const std::string& name) {
  const evaluate::Stored* stored = memory.find(name);
  if (!stored || is_real(stored->tensor.dtype)) return memory.reals(name);
  TW_TRY(const std::vector<int64_t> whole, memory.integers(name));
  return std::vector<double>(whole.begin(), whole.end());
}

// Tensors of the graph that the step starts from.
std::vector<BoundStorage> given_of(const graph::StepGraph& graph, const Composition& step) {
  std::map<std::string_view, graph::TensorId> by_name;
  for (uint32_t i = 0; i < graph.tensors.size(); ++i) by_name.emplace(graph.tensors[i].name, graph::TensorId{i});
  std::vector<BoundStorage> given;
  for (const Storage& storage : step.storages) {
    const auto tensor = by_name.find(storage.name);
    if (storage.version != 0 || tensor == by_name.end() || graph.at(tensor->second).role == Role::Activation) continue;
    given.push_back(
        {{storage.name, TensorRole::Input, storage.rows, storage.cols, storage.dtype, storage.init}, tensor->second});
  }
  return given;
}

// By tensor: whether a product reads it with its outputs as rows (constants.h). Refused when something else reads it
// otherwise: the section's memory holds it once.
Result<std::vector<bool>> columns_of(const graph::StepGraph& graph) {
  std::vector<std::optional<bool>> by_column(graph.tensors.size());
  for (const graph::Op& op : graph.ops) {
    const auto decls = graph::operand_decls(op.spec);
    for (size_t i = 0; i < decls.size(); ++i) {
      if (op.operands[i] == graph::kNoTensor || graph.at(op.operands[i]).role != Role::Constant) continue;
      std::optional<bool>& known = by_column[index(op.operands[i])];
      const bool here = graph::stored_by_column(op.spec, decls[i].name);
      if (known && *known != here)
        return refuse(RefusalKind::Unsupported, graph.at(op.operands[i]).name,
                      "is read both as a product's matrix and as rows, which are two orders of one file tensor",
                      "Give the two uses constants of their own.");
      known = here;
    }
  }
  std::vector<bool> columns;
  for (const std::optional<bool>& known : by_column) columns.push_back(known.value_or(false));
  return columns;
}

void add_choices(const graph::StepGraph& graph, const Memory& memory, const graph::Environment& reference,
                 std::vector<Choice>& choices) {
  for (uint32_t s = 0; s < graph.io.sequences.size(); ++s) {
    const graph::TensorId id = graph.io.sequences[s].logits;
    if (id == graph::kNoTensor) continue;
    const graph::Tensor& logits = graph.at(id);
    const Result<std::vector<double>> got = values_of(memory, logits.name);
    if (!got) continue;
    const std::vector<double>& want = reference.at(logits);
    const auto row_of = [&](const std::vector<double>& values, uint32_t row) {
      return std::span(values).subspan(uint64_t{row} * logits.cols, logits.cols);
    };
    for (uint32_t row = 0; row < logits.rows; ++row) {
      const std::span<const double> defined = row_of(want, row);
      const uint64_t chosen = first_maximum(row_of(*got, row)), best = first_maximum(defined);
      choices.push_back(
          {s, row, static_cast<int64_t>(chosen) + 1, static_cast<int64_t>(best) + 1, defined[best] - defined[chosen]});
    }
  }
}

}  // namespace

const Difference* StepOutcome::worst() const {
  const Difference* worst = nullptr;
  for (const Difference& difference : differences)
    if (!difference.choice && (!worst || difference.relative() > worst->relative())) worst = &difference;
  return worst;
}

const Difference* StepOutcome::of(std::string_view tensor) const {
  for (const Difference& difference : differences)
    if (difference.tensor == tensor) return &difference;
  return nullptr;
}

bool StepOutcome::same_choices() const {
  for (const Choice& choice : choices)
    if (choice.got != choice.want) return false;
  return true;
}

struct Simulator::State {
  struct Form {
    graph::StepGraph graph;
    LoweredStep lowered;
    std::vector<std::vector<uint64_t>> items;  // by section, as the sites come to them
    evaluate::Step step;
    Memory memory;
    std::vector<BoundStorage> given;
  };

  Target target;
  graph::Environment reference;
  std::vector<Form> forms;
  std::optional<size_t> current;  // the form that ran last: its memory holds the states

  Result<void> bind(Form& form) const;
  Result<void> take_up(Form& form) const;
  Result<void> set_params(Form& form) const;
  Result<void> compare_all(const Form& form, StepOutcome& outcome) const;
};

// Constants, and zeros for states.
Result<void> Simulator::State::bind(Form& form) const {
  TW_TRY(const std::vector<bool> by_column, columns_of(form.graph));
  for (const BoundStorage& given : form.given) {
    const graph::Tensor& tensor = form.graph.at(given.tensor);
    if (tensor.role == Role::State) TW_TRY_VOID(set(form.memory, given.stored, std::vector<double>(tensor.size())));
    if (tensor.role != Role::Constant) continue;
    TW_TRY(const std::vector<double>* values, reference.constants->get(tensor, by_column[index(given.tensor)]));
    TW_TRY_VOID(set(form.memory, given.stored, *values));
  }
  return {};
}

// The states as the form that ran before left them; tables as zeros.
Result<void> Simulator::State::take_up(Form& form) const {
  const Memory* from = current && &forms[*current] != &form ? &forms[*current].memory : nullptr;
  for (const BoundStorage& given : form.given) {
    const graph::Tensor& tensor = form.graph.at(given.tensor);
    if (tensor.role == Role::Table) TW_TRY_VOID(set(form.memory, given.stored, std::vector<double>(tensor.size())));
    if (tensor.role != Role::State || !from || !from->find(tensor.name)) continue;
    TW_TRY(const std::vector<double> values, values_of(*from, tensor.name));
    TW_TRY_VOID(set(form.memory, given.stored, values));
  }
  return {};
}

Result<void> Simulator::State::set_params(Form& form) const {
  for (const BoundStorage& given : form.given) {
    const graph::Tensor& tensor = form.graph.at(given.tensor);
    if (tensor.role == Role::Param) TW_TRY_VOID(set(form.memory, given.stored, reference.at(tensor)));
  }
  return {};
}

Result<void> Simulator::State::compare_all(const Form& form, StepOutcome& outcome) const {
  const auto add = [&](const graph::Tensor& tensor, std::optional<graph::OpId> op) -> Result<void> {
    if (!form.memory.find(tensor.name)) return {};
    TW_TRY(const std::vector<double> got, values_of(form.memory, tensor.name));
    outcome.differences.push_back(compare(tensor.name, got, reference.at(tensor)));
    outcome.differences.back().op = op;
    outcome.differences.back().choice = op && std::holds_alternative<graph::ArgMax>(form.graph.at(*op).spec);
    return {};
  };
  for (uint32_t i = 0; i < form.graph.ops.size(); ++i) {
    const graph::Tensor& result = form.graph.at(form.graph.ops[i].result);
    if (result.role == Role::Activation) TW_TRY_VOID(add(result, graph::OpId{i}));
  }
  for (const graph::Tensor& tensor : form.graph.tensors)
    if (tensor.role == Role::State) TW_TRY_VOID(add(tensor, std::nullopt));
  return {};
}

Simulator::Simulator(Target target, const graph::Constants& constants)
    : state_(std::make_unique<State>(State{std::move(target), graph::make_environment(constants), {}, {}})) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

Result<FormId> Simulator::add(graph::StepGraph graph) {
  TW_TRY(LoweredStep lowered, lower_step(graph, state_->target));
  const Composition& step = lowered.composition;
  const StepVerdict verdict = certify(step, state_->target);
  if (!verdict.ok()) return refuse(RefusalKind::Unsupported, step.name, to_text(step, verdict.failures.front()));
  TW_TRY(const Placement placement, place(step, state_->target));
  TW_TRY(evaluate::Step compiled, evaluate::compile(step));
  Memory memory(state_->target.tile);
  TW_TRY_VOID(evaluate::declare(step, memory));
  std::vector<BoundStorage> given = given_of(graph, step);
  State::Form form{std::move(graph),    std::move(lowered), evaluate::items_by_site(placement),
                   std::move(compiled), std::move(memory),  std::move(given)};
  TW_TRY_VOID(state_->bind(form));
  state_->forms.push_back(std::move(form));
  return FormId{static_cast<uint32_t>(state_->forms.size() - 1)};
}

const graph::StepGraph& Simulator::graph(FormId form) const {
  return state_->forms.at(static_cast<size_t>(form)).graph;
}
const LoweredStep& Simulator::lowered(FormId form) const { return state_->forms.at(static_cast<size_t>(form)).lowered; }

Result<StepOutcome> Simulator::run(FormId id, std::span<const int32_t> tokens, std::span<const uint32_t> positions) {
  State& state = *state_;
  State::Form& form = state.forms.at(static_cast<size_t>(id));
  if (form.graph.io.tokens != graph::kNoTensor)
    TW_TRY_VOID(graph::set_inputs(form.graph, state.reference, tokens, positions));
  TW_TRY_VOID(state.take_up(form));
  state.current = static_cast<size_t>(id);
  TW_TRY_VOID(graph::evaluate(form.graph, state.reference));
  TW_TRY_VOID(state.set_params(form));
  TW_TRY(const evaluate::StepRun run, form.step.run(form.memory, {.items = form.items}));
  if (run.fault) return refuse(RefusalKind::Malformed, form.graph.name, to_text(*run.fault));
  StepOutcome outcome;
  for (const evaluate::Run& section : run.runs) {
    outcome.tiles_loaded += section.tiles_loaded;
    outcome.tiles_stored += section.tiles_stored;
  }
  TW_TRY_VOID(state.compare_all(form, outcome));
  add_choices(form.graph, form.memory, state.reference, outcome.choices);
  return outcome;
}

}  // namespace tw::spatial::step
