#pragma once

// The text form of programs and steps, one statement a line (docs/spatial-ir.md). What is printed parses back to an
// equal program, well-formed or not, as long as the bodies are trees.

#include <string>
#include <string_view>

#include "base/result.h"
#include "spatial/compose.h"
#include "spatial/program.h"

namespace tw::spatial {

std::string print(const Program& program);
// The step's name, the outputs that were asked for, and its sections; what follows from them is not written.
std::string print(const Composition& step);
// One body, as it stands behind value= .
std::string print(const Expr& body);

// `label` is what refusals call the text: a path. They name the line, the column, what was found and what was expected.
// The program is not validated: validate() says whether it is well-formed.
Result<Program> parse_program(std::string_view text, std::string_view label);
// Composes what it reads, so that it is refused where compose() refuses.
Result<Composition> parse_composition(std::string_view text, std::string_view label);
Result<Expr> parse_expr(std::string_view text, std::string_view label);

}  // namespace tw::spatial
