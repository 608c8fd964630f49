// tilewright rules: the table of fusion rules, and how often each fires on a small model of every family.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/verb.h"
#include "fuse/quantize.h"
#include "fuse/rules.h"
#include "model/model.h"
#include "model/synth.h"
#include "plan/explain.h"
#include "runtime/knobs.h"

namespace tw::cli {

namespace {

struct RulesFlags {
  bool families = false, markdown = false, json = false;
};

constexpr std::array kForms{"decode", "chunk:64", "batch:3"};
using Counts = std::array<uint64_t, kForms.size()>;

// A family's toy model.
Result<model::Model> toy_model(std::string_view architecture) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("tilewright-rules-{}.gguf", getpid());
  TW_TRY_VOID(model::synthesize({.architecture = std::string(architecture)}, path));
  auto checkpoint = gguf::Checkpoint::open(path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!checkpoint) return checkpoint.refusal();
  return model::Model::load(*checkpoint);
}

Result<std::map<std::string, Counts>> firings_of(std::string_view architecture) {
  TW_TRY(const model::Model model, toy_model(architecture));
  std::map<std::string, Counts> out;
  for (size_t i = 0; i < kForms.size(); ++i) {
    TW_TRY(const graph::Form form, form_of(kForms[i]));
    TW_TRY(const graph::StepGraph graph, model.step(form));
    TW_TRY(const lane::Schedule schedule, plan::plan_step(graph, model.constants(), runtime::knobs_of({})));
    for (const auto& [rule, count] : plan::firing_counts(schedule)) out[rule][i] = count;
  }
  return out;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const fuse::Holdable& rule : fuse::holdables()) {
    if (rule.name != "fuse_quant") out.emplace_back(rule.name);
  }
  for (const std::string_view name : fuse::quantizing_classes()) out.emplace_back(name);
  return out;
}

Result<int> print_families(const RulesFlags& flags) {
  std::map<std::string, std::map<std::string, Counts>> all;
  for (const std::string_view architecture : model::Model::known_architectures()) {
    TW_TRY(all[std::string(architecture)], firings_of(architecture));
  }
  if (flags.json) {
    print_json({{"forms", kForms}, {"firings", all}});
    return kFine;
  }
  const std::string_view edge = flags.markdown ? "| " : "", bar = flags.markdown ? " | " : "  ",
                         end = flags.markdown ? " |\n" : "\n";
  fmt::print("{}rule{}fires on (decode, chunk:64, batch:3){}", edge, bar, end);
  if (flags.markdown) fmt::print("|---|---|\n");
  for (const std::string& rule : names()) {
    std::string where;
    for (const auto& [architecture, counts] : all) {
      const auto found = counts.find(rule);
      if (found == counts.end()) continue;
      where += fmt::format("{}{} {}", where.empty() ? "" : ", ", architecture, fmt::join(found->second, "/"));
    }
    fmt::print("{}{}{}{}{}", edge, flags.markdown ? fmt::format("`{}`", rule) : fmt::format("{:<22}", rule), bar,
               where.empty() ? "none" : where, end);
  }
  return kFine;
}

Result<int> print_rule_table(const RulesFlags& flags) {
  if (flags.families) return print_families(flags);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const fuse::Holdable& rule : fuse::holdables()) {
    json.push_back({{"rule", rule.name}, {"pattern", rule.pattern}, {"makes", rule.makes}});
    if (flags.json) continue;
    if (flags.markdown) {
      fmt::print("| `{}` | {} | {} |\n", rule.name, rule.pattern, rule.makes);
    } else {
      fmt::print("{:<22} {}\n{:<22}   => {}\n", rule.name, rule.pattern, "", rule.makes);
    }
  }
  if (flags.json) print_json(json);
  return kFine;
}

}  // namespace

Action add_rules(const Verb& verb) {
  auto flags = std::make_shared<RulesFlags>();
  verb.flag("--families", flags->families, "How often each rule fires on a small model of every family");
  const Option markdown = verb.flag("--markdown", flags->markdown, "Print as the rows of a table");
  verb.flag("--json", flags->json, "Print as JSON").excludes(markdown);
  return [flags] { return print_rule_table(*flags); };
}

}  // namespace tw::cli
