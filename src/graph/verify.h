#pragma once

// Whether a step graph is well formed: every finding, each with a stable code.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/step_graph.h"

namespace tw::graph {

enum class Severity : uint8_t { Error, Warning };

struct FindingCode {
  std::string_view code;  // "G1"
  Severity severity;
  std::string_view meaning;  // a sentence: what must hold
};
// Every code, in order.
std::span<const FindingCode> finding_codes();

struct Finding {
  std::string_view code;
  Severity severity = Severity::Error;
  std::optional<OpId> op;  // what it is about: an op, a tensor, or the graph as a whole
  std::optional<TensorId> tensor;
  std::string text;  // one sentence, with what was found and expected

  bool operator==(const Finding&) const = default;
};

std::vector<Finding> verify(const StepGraph& graph);

// "G6 row_norm blk.0.attn_norm: operand x (h.0) is read before an op writes it"
std::string to_text(const StepGraph& graph, const Finding& finding);
Refusal to_refusal(const StepGraph& graph, const Finding& finding);

}  // namespace tw::graph
