#include "spatial/step/lower_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/near_name.h"
#include "graph/verify.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/relayout.h"
#include "spatial/step/stored.h"

namespace tw::spatial::step {
namespace {

using graph::OpId;

// ---- which ops ----

Result<std::vector<OpId>> chosen_ops(const graph::StepGraph& graph, const std::string& only) {
  std::vector<OpId> ops;
  std::vector<std::string_view> results;
  for (uint32_t i = 0; i < graph.ops.size(); ++i) {
    const std::string_view result = graph.at(graph.ops[i].result).name;
    if (only.empty() || result == only) ops.push_back(OpId{i});
    results.push_back(result);
  }
  if (!ops.empty()) return ops;
  if (only.empty()) return refuse(RefusalKind::Usage, graph.name, "has no ops to lower");
  const std::optional<std::string_view> near = near_name(only, results);
  return refuse(RefusalKind::Usage, only, fmt::format("is no result of an op of {}", graph.name),
                near ? fmt::format("Did you mean {}?", *near) : "");
}

// ---- one op after the other ----

class StepLowering {
 public:
  StepLowering(const graph::StepGraph& graph, const Target& target, std::vector<lower::OpTensor> stored)
      : graph_(graph), target_(target), stored_(std::move(stored)), produced_(graph.tensors.size()) {}

  Result<void> add(OpId id) {
    const graph::Op& op = graph_.at(id);
    Result<lower::Lowered> lowered = lower::lower_op(op.spec, view_of(op));
    if (!lowered) return about(id, lowered.refusal());
    LoweredOp& made = ops_.emplace_back();
    made.op = id;
    made.form = std::move(lowered->form);
    made.why = std::move(lowered->why);
    for (Program& section : lowered->sections) {
      sections_.push_back(std::move(section));
      owner_.push_back(ops_.size() - 1);
    }
    produced_[index(op.result)] = true;
    return {};
  }

  Result<LoweredStep> finish() && {
    std::vector<size_t> relayouts(sections_.size());  // by section: how many stand before it
    const Relayout relayout_of = lower::relayout_for(target_);
    const Relayout relayout = [&](const RelayoutRequest& request) -> Result<std::vector<Program>> {
      Result<std::vector<Program>> made = relayout_of(request);
      if (!made) return about(ops_[owner_[request.section]].op, made.refusal());
      relayouts[request.section] += made->size();
      return made;
    };
    TW_TRY(std::vector<Program> agreed, agree_layouts(std::move(sections_), relayout));
    number_sections(relayouts);
    TW_TRY(Composition composition,
           compose(std::move(agreed), {fmt::format("{} {}", graph_.name, to_text(graph_.form)), outputs()}));
    return LoweredStep{std::move(composition), std::move(ops_)};
  }

 private:
  lower::OpTensor operand(graph::TensorId id) const {
    lower::OpTensor tensor = stored_[index(id)];
    // What an op that is left out would have made.
    if (const auto* unknown = std::get_if<UnknownFill>(&tensor.fill); unknown && !produced_[index(id)])
      tensor.fill = GivenFill{unknown->magnitude};
    return tensor;
  }

  lower::OpView view_of(const graph::Op& op) const {
    lower::OpView view{target_, {}, operand(op.result)};
    for (const graph::TensorId id : op.operands)
      view.operands.push_back(id == graph::kNoTensor ? std::nullopt : std::optional(operand(id)));
    if (graph_.at(op.result).role == graph::Role::Activation) view.result.fill = UnknownFill{};
    return view;
  }

  Refusal about(OpId id, Refusal refusal) const {
    refusal.reason = fmt::format("op {} {}: {}", index(id), op_name(graph_.at(id).spec), refusal.reason);
    return refusal;
  }

  void number_sections(const std::vector<size_t>& relayouts) {
    uint32_t next = 0;
    for (size_t s = 0; s < owner_.size(); ++s) {
      LoweredOp& op = ops_[owner_[s]];
      if (op.count == 0) op.first = next;
      for (size_t r = 0; r < relayouts[s]; ++r) op.relayouts.push_back(next++);
      op.count = ++next - op.first;
    }
  }

  std::vector<std::string> outputs() const {
    std::vector<std::string> names;
    const auto add = [&](graph::TensorId id) {
      if (id != graph::kNoTensor && produced_[index(id)]) names.push_back(graph_.at(id).name);
    };
    for (const graph::SequenceIo& sequence : graph_.io.sequences) {
      add(sequence.logits);
      add(sequence.next);
    }
    return names;
  }

  const graph::StepGraph& graph_;
  const Target& target_;
  std::vector<lower::OpTensor> stored_;  // by tensor
  std::vector<bool> produced_;           // by tensor: by an op that was lowered
  std::vector<LoweredOp> ops_;
  std::vector<Program> sections_;
  std::vector<size_t> owner_;  // by section, of ops_
};

}  // namespace

Result<LoweredStep> lower_step(const graph::StepGraph& graph, const Target& target, const LowerOptions& options) {
  for (const graph::Finding& finding : graph::verify(graph))
    if (finding.severity == graph::Severity::Error) return graph::to_refusal(graph, finding);
  TW_TRY(const std::vector<OpId> ops, chosen_ops(graph, options.only));
  TW_TRY(std::vector<lower::OpTensor> stored, stored_tensors(graph, target));
  StepLowering lowering(graph, target, std::move(stored));
  for (const OpId op : ops) TW_TRY_VOID(lowering.add(op));
  return std::move(lowering).finish();
}

}  // namespace tw::spatial::step
