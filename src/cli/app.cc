#include "cli/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>

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

// CLI11 reads an empty word as 0 and lets a whole number wrap; both are refused before it converts.
std::string check_whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return fmt::format("\"{}\" was given, a whole number from 0 on was expected", text);
}
std::string check_given(const std::string& text) { return text.empty() ? "an empty text was given" : std::string{}; }
std::string check_number(const std::string& text) {
  return text.empty() ? "nothing was given, a number was expected" : std::string{};
}

// A name or a file cannot be empty (a shell's variable that is not set is); these texts can.
constexpr std::string_view kMayBeEmpty[] = {"PROMPT", "--prompt", "--stop"};

void check_values(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    const bool may_be_empty = std::ranges::count(kMayBeEmpty, option->get_name()) != 0;
    if (option->get_type_name() == "TEXT" && !may_be_empty) option->check(CLI::Validator(check_given, ""));
    if (option->get_type_name() == "UINT") option->check(CLI::Validator(check_whole_number, ""));
    if (option->get_type_name() == "FLOAT") option->check(CLI::Validator(check_number, ""));
  }
}

int report(const Refusal& refusal) {
  std::fflush(stdout);
  fmt::print(stderr, "tilewright: {}\n", to_text(refusal));
  if (refusal.kind == RefusalKind::Interrupted) return kInterrupted;
  return refusal.kind == RefusalKind::Usage ? kUsage : kFailed;
}

}  // namespace

int run_app(int argc, const char* const* argv) {
  CLI::App app("Tilewright compiles a language model's forward step and runs it.", "tilewright");
  app.footer(std::string(kFooter));
  app.set_version_flag("--version", TW_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const VerbRow& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    actions.emplace_back(sub, verb.setup(*sub));
    check_values(*sub);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? kFine : kUsage;
  }
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    // What the machine does to us ends the request with a message, not with a trace.
    try {
      const Result<int> code = action();
      if (!code) return report(code.refusal());
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        return report(refuse(RefusalKind::Io, "standard output", "what was made cannot be written to it"));
      }
      return *code;
    } catch (const std::bad_alloc&) {
      return report(refuse(RefusalKind::TooLarge, "memory", "the machine has not enough of it for this",
                           "Try a shorter context (-c), a smaller model or fewer sequences."));
    } catch (const std::exception& error) {
      return report(refuse(RefusalKind::Io, sub->get_name(), error.what()));
    }
  }
  return kUsage;
}

}  // namespace tw::cli
