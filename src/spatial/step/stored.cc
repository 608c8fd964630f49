#include "spatial/step/stored.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "spatial/lower/attention.h"

namespace tw::spatial::step {
namespace {

using graph::Element;
using graph::OpId;
using graph::Role;
using graph::TensorId;

// ---- who uses a tensor ----

struct Use {
  const graph::Op* op;
  std::string_view operand;
};

struct Users {
  std::vector<std::vector<Use>> of;        // by tensor
  std::vector<const graph::Op*> producer;  // by tensor; null of what no op makes anew
};

Users users_of(const graph::StepGraph& graph) {
  Users users{std::vector<std::vector<Use>>(graph.tensors.size()),
              std::vector<const graph::Op*>(graph.tensors.size(), nullptr)};
  for (const graph::Op& op : graph.ops) {
    const auto decls = graph::operand_decls(op.spec);
    for (size_t i = 0; i < decls.size(); ++i)
      if (op.operands[i] != graph::kNoTensor) users.of[index(op.operands[i])].push_back({&op, decls[i].name});
    if (graph.at(op.result).role == Role::Activation) users.producer[index(op.result)] = &op;
  }
  return users;
}

// ---- integers ----

// The largest index that a use of the tensor takes, if it is an index there.
std::optional<uint64_t> reach_of(const graph::StepGraph& graph, const Use& use) {
  if (use.operand != "index" && use.operand != "position") return std::nullopt;
  for (const std::string_view indexed : {"table", "cos", "k"})
    if (const TensorId id = graph::operand(*use.op, indexed); id != graph::kNoTensor) return graph.at(id).rows;
  return std::nullopt;
}

struct Reach {
  bool index_only = true;
  uint64_t most = 1;
};

Reach reach_of(const graph::StepGraph& graph, const std::vector<Use>& uses) {
  Reach reach;
  for (const Use& use : uses) {
    const std::optional<uint64_t> most = reach_of(graph, use);
    reach.index_only = reach.index_only && most.has_value();
    reach.most = std::max(reach.most, most.value_or(0));
  }
  return reach;
}

// Of an activation that an arg-max makes: the positions it has to choose from.
std::optional<uint64_t> choices(const graph::StepGraph& graph, const graph::Op* producer) {
  if (!producer || !std::holds_alternative<graph::ArgMax>(producer->spec)) return std::nullopt;
  return graph.at(graph::operand(*producer, "x")).cols;
}

struct IntegerPlan {
  uint64_t magnitude = 0;
  Precision dtype = Precision::I32;
};

Result<IntegerPlan> plan_integers(const graph::StepGraph& graph, TensorId id, const Users& users,
                                  const Target& target) {
  const graph::Tensor& tensor = graph.at(id);
  const graph::Op* producer = users.producer[index(id)];
  const Reach reach = reach_of(graph, users.of[index(id)]);
  const std::optional<uint64_t> most =
      tensor.role == Role::Param && reach.index_only ? std::optional(reach.most) : choices(graph, producer);
  if (most && reach.index_only) {
    TW_TRY(const Precision dtype, index_precision(target, *most, tensor.name));
    return IntegerPlan{*most, dtype};
  }
  TW_TRY(Precision dtype, integer_element(target, tensor.name));
  if (producer && std::holds_alternative<graph::Matmul>(producer->spec)) {
    TW_TRY(dtype, accumulator_for(target, dtype, tensor.name));
  }
  return IntegerPlan{most.value_or(static_cast<uint64_t>(int_max(dtype))), dtype};
}

// ---- what decides ----

// Ops that pass on the precision they read: maps of one element.
bool maps_elements(const graph::OpSpec& spec) {
  return std::holds_alternative<graph::Scale>(spec) || std::holds_alternative<graph::Softcap>(spec) ||
         std::holds_alternative<graph::Activate>(spec);
}

// Marks the tensor and what it is a map of, if a product is at the end.
void widen(const graph::StepGraph& graph, const Users& users, TensorId id, std::vector<bool>& wide) {
  std::vector<TensorId> chain;
  for (;;) {
    const graph::Op* producer = users.producer[index(id)];
    if (!producer || graph.at(id).element != Element::F32) return;
    chain.push_back(id);
    if (std::holds_alternative<graph::Matmul>(producer->spec)) break;
    if (!maps_elements(producer->spec)) return;
    id = graph::operand(*producer, "x");
  }
  for (const TensorId link : chain) wide[index(link)] = true;
}

std::vector<bool> deciding(const graph::StepGraph& graph, const Users& users) {
  std::vector<bool> wide(graph.tensors.size());
  for (const graph::SequenceIo& sequence : graph.io.sequences)
    if (sequence.logits != graph::kNoTensor) widen(graph, users, sequence.logits, wide);
  for (const graph::Op& op : graph.ops)
    if (std::holds_alternative<graph::ArgMax>(op.spec)) widen(graph, users, graph::operand(op, "x"), wide);
  return wide;
}

// ---- caches ----

// Whether a use of the tensor as keys or values reads it dense. Requires a graph that verifies.
bool reads_dense(const graph::StepGraph& graph, const Use& use, const Target& target) {
  if (use.operand != "k" && use.operand != "v") return false;
  const auto width_of = [&](std::string_view operand) {
    return uint64_t{graph.at(graph::operand(*use.op, operand)).cols};
  };
  if (const auto* op = std::get_if<graph::Attention>(&use.op->spec))
    return lower::attention_reads_dense(target, op->heads, op->kv_heads, width_of("k") / op->kv_heads,
                                        width_of("v") / op->kv_heads);
  if (const auto* op = std::get_if<graph::FullAttention>(&use.op->spec))
    return lower::full_attention_reads_dense(target, width_of("k") / op->heads, width_of("v") / op->heads);
  return false;
}

// ---- fills ----

Fill fill_of(const graph::Tensor& tensor, uint64_t magnitude) {
  switch (tensor.role) {
    case Role::Table: return tensor.element == Element::I32 ? Fill(IntegerInit{0}) : Fill(RealInit{0});
    case Role::Activation: return UnknownFill{magnitude};
    default: return GivenFill{magnitude};
  }
}

}  // namespace

Result<std::vector<lower::OpTensor>> stored_tensors(const graph::StepGraph& graph, const Target& target) {
  const Users users = users_of(graph);
  const std::vector<bool> wide = deciding(graph, users);
  std::vector<lower::OpTensor> stored;
  stored.reserve(graph.tensors.size());
  for (uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[i];
    lower::OpTensor& made = stored.emplace_back();
    made.name = tensor.name;
    made.rows = tensor.rows;
    made.cols = tensor.cols;
    made.integer = tensor.element == Element::I32;
    made.constant = tensor.role == Role::Constant;
    if (users.of[i].empty() && !users.producer[i]) continue;  // no section will see it
    made.dense = tensor.role != Role::Activation && tensor.rows > 1 &&
                 std::any_of(users.of[i].begin(), users.of[i].end(),
                             [&](const Use& use) { return reads_dense(graph, use, target); });
    if (made.integer) {
      TW_TRY(const IntegerPlan plan, plan_integers(graph, TensorId{i}, users, target));
      made.dtype = plan.dtype;
      made.fill = fill_of(tensor, plan.magnitude);
    } else {
      TW_TRY(made.dtype, real_element(target, tensor.name));
      if (wide[i]) {
        TW_TRY(made.dtype, accumulator_for(target, *made.dtype, tensor.name));
      }
      made.fill = fill_of(tensor, 0);
    }
  }
  return stored;
}

}  // namespace tw::spatial::step
