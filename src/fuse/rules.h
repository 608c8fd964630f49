#pragma once

// The table of rules, in the order they are taken. A family of rules is one file (rules_<family>.cc).

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/rule.h"

namespace tw::fuse {

// The rules of the optimizer.
std::span<const Rule> rules();

// A name that can be held back, with what it does: every rule above, and the three that the planner takes on the
// finished schedule: rows_a_warp, fuse_quant, sequences.
struct Holdable {
  std::string_view name;
  std::string_view pattern;
  std::string_view makes;
};
std::span<const Holdable> holdables();

// Refuses a name that is none, naming the nearest that is.
Result<void> check_held(std::span<const std::string> held);

// The families.
extern const Rule kAddNorm, kSandwichNorm, kHeadNormRope, kGatherScale, kEmbedNorm, kGemvNormEpilogue;
extern const Rule kGemvBias, kGluPair, kGemvParts, kMergedProjections, kQkvHeadEpilogue, kRopeParts;
extern const Rule kSliceRead, kRowWrite, kJoinInPlace, kStridedValues;
extern const Rule kConvSilu, kConvSiluL2, kConvParts, kGates, kGateProjections;
extern const Rule kActGate, kAttnOutputGate;
extern const Rule kSharedExpert, kMoeRows, kMoeDeferredFinalize;

}  // namespace tw::fuse
