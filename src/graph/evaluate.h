#pragma once

// The reference evaluator: the definition of every op, in double precision and, for integer tensors, in exact integers.
// It is written to be read; nothing here is fast.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "graph/constants.h"
#include "graph/step_graph.h"

namespace tw::graph {

// Whether an operand is a matrix whose Rows are stored by column (constants.h).
bool stored_by_column(const OpSpec& spec, std::string_view operand);

// Constants as exact doubles in the shape of their tensor, each converted once, when first asked for. One set may serve
// the environments of many steps; it is not safe to share between threads.
class ConstantValues {
 public:
  explicit ConstantValues(Constants constants) : constants_(std::move(constants)) {}

  // `by_column`: stored row r of Rows is column r of the tensor (constants.h). Refuses a constant that is absent or
  // whose values do not fill the tensor. The answer lives as long as this set.
  Result<const std::vector<double>*> get(const Tensor& tensor, bool by_column);

 private:
  using Key = std::pair<std::string, bool>;
  Constants constants_;
  std::map<Key, std::vector<double>> converted_;
};

// The values of a step's tensors by name, row-major. The forms of one model name their states alike, so that one
// environment may evaluate a chunk and then decode steps. Params are set before a step; a state that is absent starts
// as zeros; tables and activations are written by the step.
struct Environment {
  std::shared_ptr<ConstantValues> constants = std::make_shared<ConstantValues>(Constants{});
  std::unordered_map<std::string, std::vector<double>> values;

  // The values of a tensor that is not a constant. Requires it to have some.
  [[nodiscard]] const std::vector<double>& at(const Tensor& tensor) const;
};

Environment make_environment(const Constants& constants);

// Runs the step. Refuses a graph with errors (verify.h), a param that is not set or of another size, a constant that is
// absent, an index out of range (naming tensor, value and range) and an integer result that does not fit an i32; the
// states are then half-written.
Result<void> evaluate(const StepGraph& graph, Environment& environment);

// Sets the params that the step's io names: `tokens` 1-based, one a row; `positions` 1-based, one a sequence.
Result<void> set_inputs(const StepGraph& graph, Environment& environment, std::span<const int32_t> tokens,
                        std::span<const uint32_t> positions);

// A sequence of one form: none for what a decode step or chunk carries.
struct SequenceOf {
  const StepGraph& graph;
  std::optional<uint32_t> sequence = {};
};
// The name that all forms share: of a tensor of sequence b the suffix "_s<b>" is left out.
std::string_view shared_name(const Tensor& tensor);
// Copies the states of one sequence to those of the same shared name. Refuses when one of the target has no source, or
// the shapes differ. States that the source environment lacks are zeros.
Result<void> copy_states(const SequenceOf& from, const Environment& from_values, const SequenceOf& to,
                         Environment& to_values);

}  // namespace tw::graph
