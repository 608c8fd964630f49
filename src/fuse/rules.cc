#include "fuse/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/near_name.h"

namespace tw::fuse {

namespace {

const std::vector<Rule>& table() {
  static const std::vector<Rule> rules{
      kAddNorm,   kSandwichNorm,        kGemvBias,    kGemvNormEpilogue, kHeadNormRope,  kSliceRead,
      kRowWrite,  kQkvHeadEpilogue,     kJoinInPlace, kConvSilu,         kConvSiluL2,    kConvParts,
      kGates,     kGateProjections,     kActGate,     kAttnOutputGate,   kGluPair,       kSharedExpert,
      kMoeRows,   kMoeDeferredFinalize, kGatherScale, kEmbedNorm,        kStridedValues, kRopeParts,
      kGemvParts, kMergedProjections};
  return rules;
}

// What the planner takes on the launches that the rules made.
constexpr Holdable kOfThePlanner[] = {
    {"rows_a_warp", "a product by quantized rows", "several rows to the unit that owns a sum"},
    {"fuse_quant", "a launch whose result is read quantized", "the launch quantizes what it stores"},
    {"sequences", "a batch's launches of one kind, one a sequence", "one launch over all sequences"},
};

}  // namespace

std::span<const Rule> rules() { return table(); }

std::span<const Holdable> holdables() {
  static const std::vector<Holdable> all = [] {
    std::vector<Holdable> names;
    for (const Rule& rule : table()) names.push_back({rule.name, rule.pattern, rule.makes});
    names.insert(names.end(), std::begin(kOfThePlanner), std::end(kOfThePlanner));
    return names;
  }();
  return all;
}

Result<void> check_held(std::span<const std::string> held) {
  for (const std::string& name : held) {
    std::vector<std::string_view> known;
    for (const Holdable& each : holdables()) known.push_back(each.name);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto near = near_name(name, known);
    return refuse(
        RefusalKind::Usage, fmt::format("rule \"{}\"", name), "is none that can be held back",
        near ? fmt::format("Did you mean {}?", *near) : fmt::format("The rules are {}.", fmt::join(known, ", ")));
  }
  return {};
}

Match join_nodes(const Context& context, std::vector<NodeId> nodes, lane::Launch launch) {
  std::sort(nodes.begin(), nodes.end());
  Rewrite last{{nodes.begin(), nodes.end() - 1}, {}, false};
  last.become.emplace_back(nodes.back(), launch);
  if (!context.graph.check(last)) return last;
  Rewrite first{{nodes.begin() + 1, nodes.end()}, {}, false};
  first.become.emplace_back(nodes.front(), std::move(launch));
  if (!context.graph.check(first)) return first;
  return last;
}

}  // namespace tw::fuse
