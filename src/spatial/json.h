#pragma once

// The JSON form of a program, for reports and other tools: the same words as the text form, ids as numbers. What is
// written reads back to an equal program, well-formed or not, as long as its texts are UTF-8.

#include <string>
#include <string_view>

#include "base/result.h"
#include "spatial/program.h"

namespace tw::spatial {

// One object; `indent` blanks a level, or one line when negative.
std::string to_json(const Program& program, int indent = -1);

// `label` is what refusals call the text. Those of JSON itself name the line and column, the others the path of the
// value, what was found and what was expected. The program is not validated.
Result<Program> program_of_json(std::string_view text, std::string_view label);

}  // namespace tw::spatial
