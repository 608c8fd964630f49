#pragma once

// The verbs of the command line: one file a verb, one line of the table in app.cc.

#include <functional>
#include <string_view>

#include "base/result.h"
#include "cli/command_line.h"

namespace tw::cli {

// Adds a verb's options; gives what runs once the command line is parsed, and answers the exit code.
using Action = std::function<Result<int>()>;
using Setup = Action (*)(const Verb& verb);

Action add_run(const Verb& verb);
Action add_inspect(const Verb& verb);
Action add_tokenize(const Verb& verb);
Action add_graph(const Verb& verb);
Action add_plan(const Verb& verb);
Action add_explain(const Verb& verb);
Action add_rules(const Verb& verb);
Action add_logits(const Verb& verb);
Action add_synth(const Verb& verb);
Action add_quantize(const Verb& verb);
Action add_bench(const Verb& verb);
Action add_lower(const Verb& verb);
Action add_simulate(const Verb& verb);
Action add_report(const Verb& verb);

}  // namespace tw::cli
