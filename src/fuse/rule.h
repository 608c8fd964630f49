#pragma once

// One rule of fusion: a name, the launches it starts from, and a match that says what they become or why not.

#include <cstdint>
#include <string_view>
#include <variant>

#include "fuse/graph.h"
#include "fuse/shim.h"
#include "lane/types.h"

namespace tw::fuse {

// What a match may look at.
struct Context {
  const Graph& graph;
  lane::Numerics numerics = lane::Numerics::Int8;
  const Shim& shim;

  [[nodiscard]] graph::Form::Kind form() const { return graph.step().form.kind; }
  [[nodiscard]] bool batch() const { return form() == graph::Form::Kind::Batch; }
};

using Match = std::variant<Miss, Rewrite>;

// The pattern is not there.
inline Match no_match() { return Miss{}; }
// The pattern is there, and this keeps the rule from firing.
inline Match miss(const char* why, lane::BufferId about = lane::kNoBuffer) { return Miss{why, about}; }

// A set of launch kinds, by their place in the variant.
using KindSet = uint64_t;
template <class L, class... All>
constexpr size_t place_in(const std::variant<All...>*) {
  size_t at = 0;
  const bool found = ((std::is_same_v<L, All> || (++at, false)) || ...);
  return found ? at : 64;
}
template <class... L>
constexpr KindSet kinds() {
  return ((KindSet{1} << place_in<L>(static_cast<const lane::Launch*>(nullptr))) | ... | KindSet{0});
}

struct Rule {
  std::string_view name;
  std::string_view pattern;  // what it looks for, in words
  std::string_view makes;    // what that becomes
  KindSet anchors = 0;       // the kinds of launch a match starts from
  Match (*match)(const Context& context, NodeId anchor) = nullptr;
};

// `nodes` become `launch` at the place of the last of them, or of the first when that is the only legal one.
Match join_nodes(const Context& context, std::vector<NodeId> nodes, lane::Launch launch);

}  // namespace tw::fuse
