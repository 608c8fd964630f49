#include "spatial/step/rollout.h"

#include <algorithm>
#include <map>

namespace tw::spatial::step {

Result<void> roll_out(Simulator& simulator, const StepOf& step_of, const RolloutOptions& options,
                      const std::function<void(const RolloutStep&)>& each) {
  if (options.prompt.empty()) return refuse(RefusalKind::Usage, "tokens", "none are given", "Give at least one.");
  std::map<size_t, FormId> forms;  // by rows
  const auto form_of = [&](size_t rows) -> Result<FormId> {
    if (const auto known = forms.find(rows); known != forms.end()) return known->second;
    TW_TRY(graph::StepGraph graph, step_of(static_cast<uint32_t>(rows)));
    TW_TRY(const FormId form, simulator.add(std::move(graph)));
    return forms.emplace(rows, form).first->second;
  };
  std::vector<int32_t> left = options.prompt;
  uint32_t position = 1;
  for (uint32_t decoded = 0; !left.empty();) {
    if (options.interrupted && options.interrupted->load())
      return refuse(RefusalKind::Interrupted, "simulation", "was interrupted");
    const size_t rows = std::min<size_t>(std::max(options.chunk, 1U), left.size());
    TW_TRY(const FormId form, form_of(rows));
    RolloutStep step{form, position, {left.begin(), left.begin() + static_cast<std::ptrdiff_t>(rows)}, {}};
    const uint32_t positions[] = {position};
    TW_TRY(step.outcome, simulator.run(form, step.tokens, positions));
    each(step);
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(rows));
    position += static_cast<uint32_t>(rows);
    if (!left.empty() || decoded++ >= options.steps) continue;
    if (step.outcome.choices.empty())
      return refuse(RefusalKind::Usage, simulator.graph(form).name, "has no logits to choose a next token from",
                    "Name them by an io line, or ask for no decode steps.");
    left.push_back(static_cast<int32_t>(step.outcome.choices.back().got));
  }
  return {};
}

}  // namespace tw::spatial::step
