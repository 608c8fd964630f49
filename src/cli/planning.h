#pragma once

// What the verbs that plan without running share: the step of a model, and the knobs of the command line.

#include <memory>
#include <string>

#include "cli/common.h"
#include "graph/step_graph.h"
#include "model/model.h"
#include "plan/plan.h"

namespace tw::cli {

struct PlanFlags {
  std::string model, form = "decode";
  EngineFlags engine;
  bool json = false;

  void add_to(const Verb& verb);
};

// Reads metadata and tensor table of a model, no weights.
Result<model::Model> load_model(const PlanFlags& flags);

Result<plan::Knobs> knobs_of(const EngineFlags& flags);

}  // namespace tw::cli
