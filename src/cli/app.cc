#include "cli/app.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/verb.h"

namespace tw::cli {

namespace {

struct VerbRow {
  std::string_view name;
  std::string_view summary;
  Setup setup;
};

constexpr VerbRow kVerbs[] = {
    {"run", "Continue a text (with no model: the story model that ships with the project)", add_run},
    {"inspect", "Show what a checkpoint holds and whether this build can run it", add_inspect},
    {"tokenize", "Turn text into token ids", add_tokenize},
    {"graph", "Print the step graph of a model", add_graph},
    {"plan", "Print the schedule of launches that a step becomes", add_plan},
    {"explain", "Say which rules made a launch, why a rule did not fire, how two plans differ", add_explain},
    {"rules", "List the rules of fusion and where they fire", add_rules},
    {"logits", "Write the logits of a prompt's last tokens to a file, with a hash of their bits", add_logits},
    {"synth", "Make a checkpoint with random weights of a known architecture", add_synth},
    {"quantize", "Rewrite a checkpoint with its matrices in another format", add_quantize},
    {"bench", "Measure prompt and decode speed against what this machine can do", add_bench},
    {"lower", "Show what a step becomes on a spatial target: programs, their forms and certificates", add_lower},
    {"simulate", "Run a step on a spatial target, bit by bit, beside its definition", add_simulate},
    {"report", "Write a page about a step on a spatial target", add_report},
};

constexpr std::string_view kFooter =
    "Examples:\n"
    "  tilewright run -p \"Once upon a time\" -n 100\n"
    "  tilewright run model.gguf \"The sea was\" --temp 0\n"
    "  tilewright inspect model.gguf\n"
    "  tilewright plan model.gguf --form chunk:64\n"
    "Results go to stdout, everything else to stderr.\n"
    "Exit codes: 0 fine, 1 refused or failed, 2 usage, 130 interrupted.";

int report_refusal(const Refusal& refusal) {
  std::fflush(stdout);
  fmt::print(stderr, "tilewright: {}\n", to_text(refusal));
  if (refusal.kind == RefusalKind::Interrupted) return kInterrupted;
  return refusal.kind == RefusalKind::Usage ? kUsage : kFailed;
}

}  // namespace

int run_app(int argc, const char* const* argv) {
  CommandLine line("Tilewright compiles a language model's forward step and runs it.", "tilewright", TW_VERSION,
                   std::string(kFooter));
  std::vector<std::pair<Verb, Action>> actions;
  for (const VerbRow& row : kVerbs) {
    const Verb verb = line.add_verb(std::string(row.name), std::string(row.summary));
    actions.emplace_back(verb, row.setup(verb));
  }
  if (const std::optional<int> code = line.parse(argc, argv)) return *code;
  for (const auto& [verb, action] : actions) {
    if (!verb.given()) continue;
    // What the machine does to us ends the request with a message, not with a trace.
    try {
      const Result<int> code = action();
      if (!code) return report_refusal(code.refusal());
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        return report_refusal(refuse(RefusalKind::Io, "standard output", "what was made cannot be written to it"));
      }
      return *code;
    } catch (const std::bad_alloc&) {
      return report_refusal(refuse(RefusalKind::TooLarge, "memory", "the machine has not enough of it for this",
                                   "Try a shorter context (-c), a smaller model or fewer sequences."));
    } catch (const std::exception& error) {
      return report_refusal(refuse(RefusalKind::Io, verb.name(), error.what()));
    }
  }
  return kUsage;
}

}  // namespace tw::cli
