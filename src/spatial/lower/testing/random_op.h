#pragma once

// Random ops: specs, shapes and operands that lowerings stumble over, and what must hold of each whatever it is.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower::testing {

struct RandomOp {
  OpCase op;
  std::optional<Precision> result;  // what the caller asks for; absent: the lowering's choice
  double ulps = 4;                  // of E, of a result that is not exact
};

// Names of the ops that have lowerings.
std::vector<std::string_view> random_op_kinds();
// Shapes of one, of a prime, of a tile or a page and one beside them; every value of the enums; operands that are
// absent, the same tensor, or stored at another precision; indices by name and by literal, at both ends and outside.
RandomOp random_op(std::string_view kind, const Target& target, uint64_t seed);
// The op with its fields, operands and result on one line.
std::string to_text(const RandomOp& op, const Target& target);

enum class RandomOutcome { Refused, Faulted, Equal };
struct Checked {
  RandomOutcome outcome = RandomOutcome::Refused;
  std::string form;  // or the reason of the refusal
};
// Lowers it. Either a refusal of what the target lacks or has no form for, about the result; or sections that are
// sound, whose tensors are named as they have to be, that compose with those of the same op under another name, and
// that fault where the definition refuses and give its values elsewhere. All else is a test failure.
Checked check(const RandomOp& op, const Target& target);

// The targets that random ops are drawn for.
std::vector<Target> random_op_targets();

}  // namespace tw::spatial::lower::testing
