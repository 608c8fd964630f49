#pragma once

// Runs a model's steps in the double-precision evaluator. Used by tests only.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "graph/evaluate.h"
#include "model/model.h"

namespace tw::model {

using Rows = std::vector<std::vector<double>>;

class StepRunner {
 public:
  explicit StepRunner(const Model& model) : model_(&model), environment_(graph::make_environment(model.constants())) {}

  // Feeds `tokens` (1-based) at the sequence's next positions in chunks of at most `rows`, and appends every row's
  // logits. `rows` 1: decode steps.
  Result<Rows> run(std::span<const int32_t> tokens, uint32_t rows) {
    Rows out;
    while (!tokens.empty()) {
      const auto count = static_cast<uint32_t>(std::min<size_t>(rows, tokens.size()));
      const graph::Form form = rows == 1 ? graph::Form{} : graph::Form{graph::Form::Kind::Chunk, count, true};
      TW_TRY(const graph::StepGraph* step, step_of(form));
      const uint32_t position[] = {position_ + 1};
      TW_TRY_VOID(graph::set_inputs(*step, environment_, tokens.first(count), position));
      TW_TRY_VOID(graph::evaluate(*step, environment_));
      append(*step, 0, out);
      position_ += count;
      tokens = tokens.subspan(count);
    }
    return out;
  }

  // Feeds one token of each sequence a step, sequence b starting at its own position; the logits of sequence b are
  // result[b]. All sequences have the same number of tokens.
  Result<std::vector<Rows>> run_batch(const std::vector<std::vector<int32_t>>& sequences) {
    const auto count = static_cast<uint32_t>(sequences.size());
    TW_TRY(const graph::StepGraph* step, step_of({graph::Form::Kind::Batch, count}));
    std::vector<Rows> out(count);
    for (uint32_t at = 0; at < sequences.front().size(); ++at) {
      std::vector<int32_t> tokens;
      for (const auto& sequence : sequences) tokens.push_back(sequence[at]);
      const std::vector<uint32_t> positions(count, at + 1);
      TW_TRY_VOID(graph::set_inputs(*step, environment_, tokens, positions));
      TW_TRY_VOID(graph::evaluate(*step, environment_));
      for (uint32_t b = 0; b < count; ++b) append(*step, b, out[b]);
    }
    return out;
  }

 private:
  Result<const graph::StepGraph*> step_of(const graph::Form& form) {
    const auto key = std::pair{static_cast<int>(form.kind), form.rows};
    if (const auto found = steps_.find(key); found != steps_.end()) return &found->second;
    TW_TRY(graph::StepGraph step, model_->step(form));
    return &steps_.emplace(key, std::move(step)).first->second;
  }

  void append(const graph::StepGraph& step, size_t sequence, Rows& out) const {
    const graph::Tensor& logits = step.at(step.io.sequences[sequence].logits);
    const std::vector<double>& values = environment_.at(logits);
    for (uint32_t r = 0; r < logits.rows; ++r)
      out.emplace_back(values.begin() + r * logits.cols, values.begin() + (r + 1) * logits.cols);
  }

  const Model* model_;
  graph::Environment environment_;
  uint32_t position_ = 0;
  std::map<std::pair<int, uint32_t>, graph::StepGraph> steps_;
};

inline double largest_difference(std::span<const std::vector<double>> a, std::span<const std::vector<double>> b) {
  double out = 0;
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < a[r].size(); ++c) {
      const double difference = std::abs(a[r][c] - b[r][c]);
      if (!(difference <= out)) out = difference;  // a NaN counts
    }
  return out;
}

}  // namespace tw::model
