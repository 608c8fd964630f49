#pragma once

// A step as launches that the rules of fusion rewrite. Lifting gives every graph op a launch of its own; a rewrite
// makes several launches one. A node lies at the place of one of the ops it covers, so the order of nodes is the order
// of their ids.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/constants.h"
#include "graph/step_graph.h"
#include "lane/launch.h"

namespace tw::fuse {

// The index of the op at whose place the node lies.
enum class NodeId : uint32_t {};
inline constexpr NodeId kNoNode{0xffffffffU};
constexpr uint32_t index(NodeId id) { return static_cast<uint32_t>(id); }
constexpr bool present(NodeId id) { return id != kNoNode; }

struct Node {
  lane::Launch launch;
  std::vector<graph::OpId> covers;  // the ops it computes, ascending; empty for a node that went into another
};

// Why something does not apply: a sentence without its end, and the buffer it is about if any.
struct Miss {
  const char* why = nullptr;  // null: the launches do not have the rule's pattern at all
  lane::BufferId about = lane::kNoBuffer;
};

// Nodes that vanish, and the launches that others become. The ops of those that vanish go to the first of the others,
// or with `cover_all` to all of them.
struct Rewrite {
  std::vector<NodeId> vanish;
  std::vector<std::pair<NodeId, lane::Launch>> become;
  bool cover_all = false;
};

class Graph {
 public:
  // A launch for every op; refused with the op's name where this project has none (lane/link.h).
  static Result<Graph> lift(const graph::StepGraph& step, const graph::Constants& constants);

  [[nodiscard]] const graph::StepGraph& step() const { return *step_; }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }  // places, empty ones too
  [[nodiscard]] bool alive(NodeId id) const { return kinds_[index(id)] != kGone; }
  // The place of a node's kind in the variant of launches; kGone for a node that went into another.
  [[nodiscard]] uint8_t kind(NodeId id) const { return kinds_[index(id)]; }
  static constexpr uint8_t kGone = 255;
  [[nodiscard]] const Node& at(NodeId id) const { return nodes_[index(id)]; }
  template <class L>
  [[nodiscard]] const L* as(NodeId id) const {
    return present(id) ? std::get_if<L>(&nodes_[index(id)].launch) : nullptr;
  }

  [[nodiscard]] const graph::Tensor& tensor(lane::BufferId id) const { return step_->tensors[lane::index(id)]; }
  // The sequence of a batch that a node's result belongs to; none for what sequences share.
  [[nodiscard]] std::optional<uint32_t> sequence(NodeId id) const;

  // The node that alone writes the activation `id`, and writes nothing else of it; kNoNode when there is none (a view,
  // a table, an input).
  [[nodiscard]] NodeId producer(lane::BufferId id) const;
  // The nodes that read elements of `id`, itself or through a view, ascending.
  [[nodiscard]] std::vector<NodeId> readers(lane::BufferId id) const;
  // The first node after `node` that reads elements of `id`.
  [[nodiscard]] NodeId reader_after(lane::BufferId id, NodeId node) const;
  // The nodes that write elements of `id`, ascending.
  [[nodiscard]] std::vector<NodeId> writers(lane::BufferId id) const;
  // The only node that reads the activation `id`; kNoNode when there are several or none, or when it outlives the step.
  [[nodiscard]] NodeId sole_reader(lane::BufferId id) const;
  // The buffer that the elements of `id` lie in, and the first of them: another one for a view.
  [[nodiscard]] lane::BufferId root(lane::BufferId id) const { return place(id).root; }
  [[nodiscard]] uint64_t offset(lane::BufferId id) const { return place(id).offset; }
  // Whether the values of `id` are wanted after the step: inputs and outputs, carried state.
  [[nodiscard]] bool outlives(lane::BufferId id) const;

  // Whether node `from` may run at the place of node `to`: no node between, other than those of `group`, writes what it
  // touches or touches what it writes. Otherwise the buffer it is about.
  [[nodiscard]] std::optional<Miss> blocked(NodeId from, NodeId to, std::span<const NodeId> group) const;

  // Whether the rewrite keeps every value that is read elsewhere and moves no effect past another.
  [[nodiscard]] std::optional<Miss> check(const Rewrite& rewrite) const;
  // Requires that check found nothing. The covers of the result.
  std::vector<graph::OpId> apply(Rewrite&& rewrite);
  // Gives a node another launch of the same kind that touches the same buffers.
  lane::Launch& launch(NodeId id) { return nodes_[index(id)].launch; }

 private:
  // Elements of a root buffer that a node touches.
  struct Access {
    lane::BufferId root = lane::kNoBuffer;
    uint64_t from = 0, to = 0;
    bool reads = false, writes = false;
  };
  struct Entry {
    NodeId node;
    uint64_t from = 0, to = 0;
    bool reads = false, writes = false;
    [[nodiscard]] bool touches() const { return reads || writes; }
  };
  using Entries = std::vector<Entry>;
  struct Place {
    lane::BufferId root;
    uint64_t offset;
  };

  Graph() = default;
  [[nodiscard]] Place place(lane::BufferId id) const;
  [[nodiscard]] std::vector<Access> accesses(const lane::Launch& launch) const;
  [[nodiscard]] std::optional<Miss> feeds_itself(const lane::Launch& launch) const;
  void enter(NodeId id);
  void leave(NodeId id);
  static std::pair<Entries::iterator, Entries::iterator> of_node(Entries& entries, NodeId id);

  const graph::StepGraph* step_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<uint8_t> kinds_;                 // of each node: a pass over the graph reads nothing else of most
  std::vector<Place> places_;                  // of each buffer: the root its elements lie in
  std::vector<std::vector<Access>> accesses_;  // of each node
  std::vector<std::vector<Entry>> entries_;    // of each root, by node
  std::vector<bool> outlives_;
};

}  // namespace tw::fuse
