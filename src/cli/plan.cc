// tilewright plan: the schedule of launches that a step becomes.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/planning.h"
#include "cli/verb.h"
#include "plan/explain.h"

namespace tw::cli {

namespace {

Result<int> print_plan(const PlanFlags& flags) {
  TW_TRY(const plan::Knobs knobs, knobs_of(flags.engine));
  TW_TRY(const graph::Form form, form_of(flags.form));
  TW_TRY(const model::Model model, load_model(flags));
  TW_TRY(const graph::StepGraph graph, model.step(form));
  TW_TRY(const lane::Schedule schedule, plan::plan_step(graph, model.constants(), knobs));
  if (flags.json) {
    print_json(plan::report_json(schedule, graph, knobs));
  } else {
    fmt::print("{}", plan::report(schedule, graph, knobs));
  }
  return kFine;
}

}  // namespace

Action add_plan(const Verb& verb) {
  auto flags = std::make_shared<PlanFlags>();
  flags->add_to(verb);
  return [flags] { return print_plan(*flags); };
}

}  // namespace tw::cli
