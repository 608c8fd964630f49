#pragma once

// Runs the steps of a model on a spatial target, bit by bit on the host, and beside them in double precision: the
// definition of every op (graph/evaluate.h). Both get the same tokens; states are carried from step to step by each for
// itself.
//
//   Simulator simulator(target, constants);
//   TW_TRY(const FormId chunk, simulator.add(*model.step(chunk_of_16)));
//   TW_TRY(const FormId decode, simulator.add(*model.step({})));
//   TW_TRY(const StepOutcome first, simulator.run(chunk, tokens, positions));
//   TW_TRY(const StepOutcome second, simulator.run(decode, next, positions));

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/constants.h"
#include "graph/step_graph.h"
#include "spatial/step/compare.h"
#include "spatial/step/lower_step.h"

namespace tw::spatial::step {

enum class FormId : uint32_t {};

// The arg-max of a row of logits, 1-based.
struct Choice {
  uint32_t sequence = 0;
  uint32_t row = 0;
  int64_t got = 0;
  int64_t want = 0;
  double margin = 0;  // by which the definition prefers what it wants to what the target chose
};

struct StepOutcome {
  std::vector<Difference> differences;  // of every result, in the order of the ops, then of every state
  std::vector<Choice> choices;          // by sequence and row
  uint64_t tiles_loaded = 0;
  uint64_t tiles_stored = 0;

  // The largest relative one of all that are no choices, and that of a tensor; null when there is none.
  [[nodiscard]] const Difference* worst() const;
  [[nodiscard]] const Difference* of(std::string_view tensor) const;
  [[nodiscard]] bool same_choices() const;
};

class Simulator {
 public:
  Simulator(Target target, const graph::Constants& constants);
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;
  ~Simulator();

  // Lowers, certifies, places and compiles a form of the step, and binds its constants, each rounded once to what it is
  // stored as. Refuses what cannot be lowered, what has no certificate, and a constant without values. The forms of one
  // model name their states alike.
  Result<FormId> add(graph::StepGraph graph);
  [[nodiscard]] const graph::StepGraph& graph(FormId form) const;
  [[nodiscard]] const LoweredStep& lowered(FormId form) const;

  // One step. `tokens` 1-based, one a row; `positions` 1-based, one a sequence; both empty for a graph without io.
  // Refuses what the definition refuses (a token past the vocabulary), and a fault of the run, by its text.
  Result<StepOutcome> run(FormId form, std::span<const int32_t> tokens, std::span<const uint32_t> positions);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tw::spatial::step
