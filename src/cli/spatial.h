#pragma once

// What the verbs about spatial targets share: a model or a graph file as the source of steps, and the target.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command_line.h"
#include "gguf/checkpoint.h"
#include "graph/text.h"
#include "model/model.h"
#include "spatial/step/examine.h"
#include "spatial/target.h"

namespace tw::cli {

struct SpatialFlags {
  std::string source, target;
  std::optional<uint32_t> context;

  void add_to(const Verb& verb);
};

// The target that --target names: a shipped one, or a file.
Result<spatial::Target> target_of(const SpatialFlags& flags);

// Where steps come from: a checkpoint, in any form, or a graph's text, which is one.
class StepSource {
 public:
  static Result<StepSource> open(const SpatialFlags& flags);

  [[nodiscard]] bool is_model() const { return model_.has_value(); }
  // Of a graph file the graph itself; asking it for another form is refused.
  [[nodiscard]] Result<graph::StepGraph> step(const std::optional<std::string>& form) const;
  // The step of so many rows of one sequence.
  [[nodiscard]] Result<graph::StepGraph> step_of_rows(uint32_t rows) const;
  [[nodiscard]] const graph::Constants& constants() const;

  // Requires is_model().
  [[nodiscard]] const gguf::Checkpoint& checkpoint() const { return *checkpoint_; }
  // Requires a graph file.
  [[nodiscard]] const graph::StepGraph& graph() const { return graph_->graph; }

 private:
  std::string path_;
  std::optional<gguf::Checkpoint> checkpoint_;
  std::optional<model::Model> model_;
  std::optional<graph::ParsedGraph> graph_;
};

// What `lower` and `report` look at: one form of the step, or one op of it.
struct ExamineFlags {
  SpatialFlags spatial;
  std::optional<std::string> form;
  std::string op;

  void add_to(const Verb& verb);
};
Result<spatial::step::Examined> examine(const ExamineFlags& flags);

}  // namespace tw::cli
