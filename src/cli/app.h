#pragma once

namespace tw::cli {

// The whole program: parses the command line, runs the verb, prints a refusal to stderr. Answers the exit code.
int run_app(int argc, const char* const* argv);

}  // namespace tw::cli
