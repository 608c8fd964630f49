#pragma once

// The verbs of the command line: one file a verb, one line of the table in app.cc.

#include <CLI/CLI.hpp>

#include <functional>
#include <string_view>

#include "base/result.h"

namespace tw::cli {

// Exit codes.
inline constexpr int kFine = 0;
inline constexpr int kFailed = 1;         // refused or failed
inline constexpr int kUsage = 2;          // the command line was wrong
inline constexpr int kInterrupted = 130;  // ended by Ctrl-C, what was made so far was printed

// Adds a verb's flags to its subcommand; gives what runs once the command line is parsed, and answers the exit code.
using Action = std::function<Result<int>()>;
using Setup = Action (*)(CLI::App& app);

Action add_run(CLI::App& app);
Action add_inspect(CLI::App& app);
Action add_tokenize(CLI::App& app);
Action add_graph(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_explain(CLI::App& app);
Action add_rules(CLI::App& app);
Action add_logits(CLI::App& app);
Action add_synth(CLI::App& app);
Action add_quantize(CLI::App& app);
Action add_bench(CLI::App& app);
Action add_lower(CLI::App& app);
Action add_simulate(CLI::App& app);
Action add_report(CLI::App& app);

}  // namespace tw::cli
