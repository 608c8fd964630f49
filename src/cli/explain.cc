// tilewright explain: which rules made the launch of an op, why a rule did not fire, how two plans differ.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/planning.h"
#include "cli/verb.h"
#include "fuse/rules.h"
#include "lane/print.h"
#include "plan/explain.h"

namespace tw::cli {

namespace {

using nlohmann::ordered_json;

struct ExplainFlags {
  PlanFlags plan;
  std::string why, why_not, at;
  std::vector<std::string> diff;
};

struct Planned {
  graph::StepGraph graph;
  lane::Schedule schedule;
  plan::Explanation explanation;
};

Result<Planned> make_plan(const model::Model& model, const graph::Form& form, const plan::Knobs& knobs) {
  Planned out;
  TW_TRY(out.graph, model.step(form));
  TW_TRY(out.schedule, plan::plan_step(out.graph, model.constants(), knobs, &out.explanation));
  return out;
}

// "FORM" or "FORM-RULE-RULE": a form and the rules held back in it.
Result<Planned> plan_of(const model::Model& model, const std::string& spec, plan::Knobs knobs) {
  size_t dash = spec.find('-');
  TW_TRY(const graph::Form form, form_of(spec.substr(0, dash)));
  while (dash != std::string::npos) {
    const size_t next = spec.find('-', dash + 1);
    knobs.held.push_back(spec.substr(dash + 1, next == std::string::npos ? next : next - dash - 1));
    dash = next;
  }
  return make_plan(model, form, knobs);
}

std::vector<std::string> op_texts(const graph::StepGraph& graph, const std::vector<graph::OpId>& ops) {
  std::vector<std::string> out;
  for (const graph::OpId op : ops) out.push_back(fmt::format("{} {}", graph::index(op), plan::op_text(graph, op)));
  return out;
}

std::string firing_text(const Planned& planned, uint32_t at) {
  const lane::Firing& firing = planned.schedule.fusions[at];
  return fmt::format("{} on {}", firing.rule, fmt::join(op_texts(planned.graph, firing.ops), "; "));
}

Result<int> print_why(const ExplainFlags& flags, const Planned& planned) {
  TW_TRY(const graph::OpId op, plan::find_op(planned.graph, flags.why));
  const plan::Why why = plan::why(planned.schedule, op);
  std::vector<std::string> launches, rules;
  for (const uint32_t i : why.launches) {
    launches.push_back(fmt::format("{} {}", i, print(planned.schedule.launches[i].launch, planned.schedule)));
  }
  for (const uint32_t f : why.firings) rules.push_back(firing_text(planned, f));
  if (flags.plan.json) {
    print_json(ordered_json{{"op", plan::op_text(planned.graph, op)}, {"launches", launches}, {"rules", rules}});
    return kFine;
  }
  fmt::print("op {} {}\n", graph::index(op), plan::op_text(planned.graph, op));
  for (const std::string& launch : launches) fmt::print("  is computed by launch {}\n", launch);
  for (const std::string& rule : rules) fmt::print("  {}\n", rule);
  if (rules.empty()) fmt::print("  no rule took part: the op is a launch of its own\n");
  return kFine;
}

Result<int> print_why_not(const ExplainFlags& flags, const Planned& planned, const plan::Knobs& knobs) {
  TW_TRY_VOID(fuse::check_held(std::vector<std::string>{flags.why_not}));
  std::optional<graph::OpId> op;
  if (!flags.at.empty()) {
    TW_TRY(op, plan::find_op(planned.graph, flags.at));
  }
  const plan::WhyNot found = plan::why_not(planned.schedule, planned.explanation, flags.why_not, op);
  std::vector<std::string> fired;
  for (const uint32_t f : found.fired) fired.push_back(firing_text(planned, f));
  if (flags.plan.json) {
    ordered_json missed = ordered_json::array();
    for (const fuse::Missed& miss : found.missed) {
      missed.push_back({{"at", op_texts(planned.graph, miss.covers)}, {"why", miss.why}});
    }
    print_json(ordered_json{{"rule", flags.why_not}, {"fired", fired}, {"missed", missed}});
    return kFine;
  }
  for (const std::string& firing : fired) fmt::print("fired: {}\n", firing);
  for (const fuse::Missed& miss : found.missed) {
    fmt::print("did not fire at {}: {}\n", fmt::join(op_texts(planned.graph, miss.covers), "; "), miss.why);
  }
  if (!fired.empty() || !found.missed.empty()) return kFine;
  if (knobs.holds(flags.why_not)) {
    fmt::print("the rule is held back\n");
    return kFine;
  }
  for (const fuse::Holdable& rule : fuse::holdables()) {
    if (rule.name != flags.why_not) continue;
    fmt::print("its pattern is not {}: {}\n", op ? "at this op" : "in this step", rule.pattern);
  }
  return kFine;
}

void print_counts(std::string_view title, const std::map<std::string, std::pair<uint64_t, uint64_t>>& counts) {
  for (const auto& [name, pair] : counts) fmt::print("{} {:<24} {:>8} {:>8}\n", title, name, pair.first, pair.second);
}

Result<int> print_diff(const ExplainFlags& flags, const model::Model& model, const plan::Knobs& knobs) {
  TW_TRY(const Planned a, plan_of(model, flags.diff[0], knobs));
  TW_TRY(const Planned b, plan_of(model, flags.diff[1], knobs));
  const plan::Difference d = plan::difference(a.schedule, a.graph, b.schedule, b.graph);
  if (flags.plan.json) {
    print_json(ordered_json{{"a", flags.diff[0]},
                            {"b", flags.diff[1]},
                            {"launches", {d.a.launches, d.b.launches}},
                            {"intermediate_bytes", {d.a.intermediate_bytes, d.b.intermediate_bytes}},
                            {"census", d.census},
                            {"firings", d.firings},
                            {"only_a", d.only_a},
                            {"only_b", d.only_b}});
    return kFine;
  }
  fmt::print("{:<31} {:>8} {:>8}\n", "", "a", "b");
  fmt::print("{:<31} {:>8} {:>8}\n", "launches", d.a.launches, d.b.launches);
  fmt::print("{:<31} {:>8} {:>8}\n", "bytes of intermediates", d.a.intermediate_bytes, d.b.intermediate_bytes);
  print_counts("census", d.census);
  print_counts("rule  ", d.firings);
  for (const std::string& launch : d.only_a) fmt::print("- {}\n", launch);
  for (const std::string& launch : d.only_b) fmt::print("+ {}\n", launch);
  return kFine;
}

// Without a question: every rule that can be held back, how often it fired, and how often its pattern was there and
// something kept it from firing.
Result<int> print_rules(const ExplainFlags& flags, const Planned& planned) {
  std::map<std::string, uint64_t> missed;
  for (const fuse::Missed& miss : planned.explanation.missed) ++missed[std::string(miss.rule)];
  ordered_json rows = ordered_json::array();
  for (const fuse::Holdable& rule : fuse::holdables()) {
    const std::string name(rule.name);
    const uint64_t yes = plan::times_fired(planned.schedule, name);
    rows.push_back(
        {{"rule", name}, {"fired", yes}, {"missed", missed[name]}, {"pattern", rule.pattern}, {"makes", rule.makes}});
    if (!flags.plan.json) {
      fmt::print("{:<22} fired {:>5}  missed {:>5}  {} => {}\n", name, yes, missed[name], rule.pattern, rule.makes);
    }
  }
  if (flags.plan.json) print_json(rows);
  return kFine;
}

Result<int> explain(const ExplainFlags& flags) {
  TW_TRY(const plan::Knobs knobs, knobs_of(flags.plan.engine));
  TW_TRY(const graph::Form form, form_of(flags.plan.form));
  TW_TRY(const model::Model model, load_model(flags.plan));
  if (!flags.diff.empty()) return print_diff(flags, model, knobs);
  TW_TRY(const Planned planned, make_plan(model, form, knobs));
  if (!flags.why.empty()) return print_why(flags, planned);
  if (!flags.why_not.empty()) return print_why_not(flags, planned, knobs);
  return print_rules(flags, planned);
}

}  // namespace

Action add_explain(const Verb& verb) {
  auto flags = std::make_shared<ExplainFlags>();
  flags->plan.add_to(verb);
  const Option why =
      verb.option("--why", flags->why, "Which launch computes this op (number or result), and by which rules");
  const Option why_not =
      verb.option("--why-not", flags->why_not, "Where this rule did not fire, and what kept it from it");
  verb.option("--at", flags->at, "With --why-not: only where this op (number or result) is").needs(why_not);
  const Option diff =
      verb.option("--diff", flags->diff, "Two plans to compare, each FORM or FORM-RULE with a rule held back").takes(2);
  why.excludes(why_not).excludes(diff);
  why_not.excludes(diff);
  verb.footer(
      "Examples:\n"
      "  tilewright explain\n"
      "  tilewright explain --why blk.0.q_rope\n"
      "  tilewright explain --why-not glu_pair --at blk.0.ffn_hidden\n"
      "  tilewright explain --diff decode decode-gemv_parts");
  return [flags] { return explain(*flags); };
}

}  // namespace tw::cli
