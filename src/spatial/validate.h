#pragma once

// The structure of a program: what the specification demands of it before anything is placed, certified or run. All
// findings are returned, each with a code and the thing it is about. What depends on the items' addresses and on rates
// (coverage, bounds, balance, order of state) is the certificate's.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spatial/program.h"

namespace tw::spatial {

struct FindingCode {
  std::string_view code;
  std::string_view rule;
};
std::span<const FindingCode> finding_codes();

struct Finding {
  std::string_view code;
  std::optional<StageId> stage;
  std::optional<BufferId> buffer;
  std::optional<TensorId> tensor;
  std::string text;
};

std::vector<Finding> validate(const Program& program);

// "S16 stage silu (buffer in_x): ..."
std::string to_text(const Program& program, const Finding& finding);
// "stage silu (buffer in_x)": the narrowest thing that is given, the program when none is.
std::string place_text(const Program& program, std::optional<StageId> stage, std::optional<BufferId> buffer,
                       std::optional<TensorId> tensor);

// What a target cannot do of the program, as the first refusal: its tile, page, precisions, capabilities. Local memory
// is not looked at: sizes are measured first (sizing.h). The subject is the result's name.
Result<void> check_target(const Program& program, const Target& target);

// The refusal of a program with findings; the subject is the result's name.
Refusal to_refusal(const Program& program, std::span<const Finding> findings);

}  // namespace tw::spatial
