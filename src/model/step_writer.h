#pragma once

// Writes the step graph of one form over a GraphBuilder: what sequences share is written once over all rows; what each
// has for itself (caches, rings, memories, positions) is written once a sequence, over its own row.
//
// Names. Tensors of the model are "blk.3.q", constants as placed. In a batch, everything that belongs to sequence b
// has the suffix "_s<b>" and its `sequence` set. State has the same name (less the suffix) and shape in every form.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "model/weights.h"

namespace tw::model {

class StepWriter;

// How a step ends: softcap(scale * (norm(h) times `stem`.weight)).
struct Head {
  std::string_view norm;  // weight of the final norm
  float eps = 0;
  std::string_view stem;
  float scale = 1;    // 1: none
  float softcap = 0;  // 0: none
};

// One sequence's part of a step: its rows (all rows of a chunk, one row of a batch) and its own tensors.
class SequenceWriter {
 public:
  // This sequence's rows of `x`: x itself, or the sequence's row of a batch as a view.
  graph::TensorId rows(std::string_view name, graph::TensorId x);
  graph::TensorId add(std::string_view name, graph::OpSpec spec, std::vector<graph::TensorId> operands);
  // Declared at first use: layers that name one state share it.
  graph::TensorId state(std::string_view name, uint32_t rows, uint32_t cols);
  [[nodiscard]] graph::TensorId position() const { return position_; }
  // Writes `rows` into the cache at the sequence's position.
  void set_cache(graph::TensorId cache, graph::TensorId rows);
  StepWriter& step() { return *step_; }

 private:
  friend class StepWriter;
  SequenceWriter(StepWriter& step, std::optional<uint32_t> index, graph::TensorId position)
      : step_(&step), index_(index), position_(position) {}
  [[nodiscard]] std::string own_name(std::string_view name) const;

  StepWriter* step_;
  std::optional<uint32_t> index_;  // none when the step has one sequence
  graph::TensorId position_;
};

class StepWriter {
 public:
  StepWriter(const Weights& weights, std::string name, graph::Form form, uint32_t context);

  [[nodiscard]] uint32_t context() const { return context_; }
  [[nodiscard]] bool has(std::string_view constant) const { return weights_->extents.contains(constant); }
  // A placed constant, declared in this graph at first use; kNoTensor from `optional` when it was not placed.
  graph::TensorId constant(std::string_view name);
  graph::TensorId optional(std::string_view name);

  graph::TensorId add(std::string_view name, graph::OpSpec spec, std::vector<graph::TensorId> operands);
  graph::TensorId tokens() const { return tokens_; }

  // x times the matrix `stem`.weight, plus `stem`.bias when that is placed.
  graph::TensorId product(std::string_view name, graph::TensorId x, std::string_view stem);
  graph::TensorId rms_norm(std::string_view name, graph::TensorId x, std::string_view weight, float eps);
  graph::TensorId scale(std::string_view name, graph::TensorId x, float factor);  // x itself when the factor is 1
  graph::TensorId elementwise(std::string_view name, graph::Arithmetic op, graph::TensorId a, graph::TensorId b);
  graph::TensorId activate(std::string_view name, graph::ActivationKind kind, graph::TensorId x);

  // Writes `body` for every sequence. With one, the result is the body's; in a batch the results (one row of `width`
  // values each) are set into a table `name`, one row a sequence.
  graph::TensorId each_sequence(std::string_view name, uint32_t width,
                                const std::function<graph::TensorId(SequenceWriter&)>& body);

  // The end of a step: final norm, head, and each sequence's logits and next token. `h` holds all rows.
  void finish_with_head(graph::TensorId h, const Head& head);

  [[nodiscard]] graph::StepGraph finish() && { return std::move(builder_).finish(); }

 private:
  friend class SequenceWriter;

  const Weights* weights_;
  graph::Form form_;
  uint32_t context_;
  graph::GraphBuilder builder_;
  graph::TensorId tokens_;
  std::vector<SequenceWriter> sequences_;
  std::map<std::string, graph::TensorId, std::less<>> declared_;
};

}  // namespace tw::model
