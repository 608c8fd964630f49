#include "fuse/graph.h"

#include <algorithm>

#include "base/check.h"
#include "lane/link.h"
#include "lane/uses.h"

namespace tw::fuse {

namespace {

using graph::Role;
using lane::BufferId;
using lane::Use;

constexpr BufferId kNone = lane::kNoBuffer;

bool contains(std::span<const NodeId> nodes, NodeId id) {
  return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
}

bool meet(uint64_t a_from, uint64_t a_to, uint64_t b_from, uint64_t b_to) { return a_from < b_to && b_from < a_to; }

// The buffer that says which sequence a node belongs to: the first it writes.
BufferId first_written(const lane::Launch& launch) {
  for (const Use& use : lane::uses(launch, lane::Numerics::Precise)) {
    if (use.writes) return use.buffer;
  }
  return kNone;
}

// The elements of its buffer that an operand covers.
std::pair<uint64_t, uint64_t> elements(const Use& use, uint64_t size) {
  if (use.reads || !use.writes) return {0, size};
  if (use.whole != 0) return {0, use.whole};
  if (use.rows && !lane::present(use.rows->param) && use.rows->fixed != 0) {
    const uint64_t from = uint64_t{use.rows->fixed - 1} * use.rows->pitch;
    return {from, from + use.row_count * use.rows->pitch};
  }
  return {0, size};
}

std::vector<graph::OpId> united(std::vector<graph::OpId> a, const std::vector<graph::OpId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

}  // namespace

Result<Graph> Graph::lift(const graph::StepGraph& step, const graph::Constants& constants) {
  Graph out;
  out.step_ = &step;
  for (uint32_t i = 0; i < step.tensors.size(); ++i) out.places_.push_back({BufferId{i}, 0});
  out.nodes_.reserve(step.ops.size());
  const lane::LinkContext context{step, constants};
  for (uint32_t i = 0; i < step.ops.size(); ++i) {
    TW_TRY(lane::Launch launch, lane::link(context, graph::OpId{i}));
    if (const auto* view = std::get_if<lane::View>(&launch)) {
      const Place source = out.place(view->src);
      out.places_[lane::index(view->out)] = {source.root, source.offset + view->offset};
    }
    out.nodes_.push_back({std::move(launch), {graph::OpId{i}}});
  }
  out.outlives_.resize(step.tensors.size(), false);
  for (uint32_t i = 0; i < step.tensors.size(); ++i) {
    const Role role = step.tensors[i].role;
    out.outlives_[i] = role == Role::State || role == Role::Param;
  }
  for (const graph::SequenceIo& io : step.io.sequences) {
    for (const graph::TensorId id : {io.position, io.logits, io.next}) {
      if (id == graph::kNoTensor) continue;
      out.outlives_[graph::index(id)] = true;
      out.outlives_[lane::index(out.place(lane::buffer_of(id)).root)] = true;
    }
  }
  out.entries_.resize(step.tensors.size());
  out.accesses_.resize(step.ops.size());
  out.kinds_.resize(step.ops.size(), kGone);
  for (uint32_t i = 0; i < step.ops.size(); ++i) out.enter(NodeId{i});
  return out;
}

Graph::Place Graph::place(BufferId id) const { return places_[lane::index(id)]; }

std::vector<Graph::Access> Graph::accesses(const lane::Launch& launch) const {
  std::vector<Access> out;
  for (const Use& use : lane::uses(launch, lane::Numerics::Precise)) {
    const Place at = place(use.buffer);
    // Constants are only ever read.
    if (tensor(at.root).role == Role::Constant) continue;
    const auto [from, to] = elements(use, tensor(use.buffer).size());
    out.push_back({at.root, at.offset + from, at.offset + to, use.reads, use.writes});
  }
  return out;
}

void Graph::enter(NodeId id) {
  kinds_[index(id)] = static_cast<uint8_t>(at(id).launch.index());
  accesses_[index(id)] = accesses(at(id).launch);
  for (const Access& access : accesses_[index(id)]) {
    std::vector<Entry>& entries = entries_[lane::index(access.root)];
    auto [at, end] = of_node(entries, id);
    while (at != end && at->touches() && (at->from != access.from || at->to != access.to)) ++at;
    if (at == end) at = entries.insert(end, Entry{id});
    at->from = access.from, at->to = access.to;
    at->reads |= access.reads, at->writes |= access.writes;
  }
}

// Entries stay where they are, touching nothing, until their node enters again: lists of what everything reads (a
// position) are long, and moving their tails would make a pass over the graph quadratic.
void Graph::leave(NodeId id) {
  kinds_[index(id)] = kGone;
  for (const Access& access : accesses_[index(id)]) {
    auto [at, end] = of_node(entries_[lane::index(access.root)], id);
    for (; at != end; ++at) at->reads = at->writes = false;
  }
  accesses_[index(id)].clear();
}

std::pair<Graph::Entries::iterator, Graph::Entries::iterator> Graph::of_node(Entries& entries, NodeId id) {
  return std::equal_range(entries.begin(), entries.end(), Entry{id},
                          [](const Entry& a, const Entry& b) { return a.node < b.node; });
}

std::optional<uint32_t> Graph::sequence(NodeId id) const {
  const BufferId written = first_written(at(id).launch);
  return lane::present(written) ? tensor(written).sequence : std::nullopt;
}

NodeId Graph::producer(BufferId id) const {
  if (!lane::present(id) || tensor(id).role != Role::Activation || place(id).root != id) return kNoNode;
  NodeId found = kNoNode;
  for (const Entry& entry : entries_[lane::index(id)]) {
    if (!entry.writes) continue;
    if (present(found)) return kNoNode;
    found = entry.node;
  }
  return found;
}

std::vector<NodeId> Graph::readers(BufferId id) const {
  const Place at = place(id);
  const uint64_t to = at.offset + tensor(id).size();
  std::vector<NodeId> out;
  for (const Entry& entry : entries_[lane::index(at.root)]) {
    if (!entry.reads || !meet(entry.from, entry.to, at.offset, to)) continue;
    if (out.empty() || out.back() != entry.node) out.push_back(entry.node);
  }
  return out;
}

NodeId Graph::reader_after(BufferId id, NodeId node) const {
  const Place at = place(id);
  const uint64_t to = at.offset + tensor(id).size();
  const std::vector<Entry>& entries = entries_[lane::index(at.root)];
  auto entry = std::upper_bound(entries.begin(), entries.end(), node,
                                [](NodeId before, const Entry& e) { return before < e.node; });
  for (; entry != entries.end(); ++entry) {
    if (entry->reads && meet(entry->from, entry->to, at.offset, to)) return entry->node;
  }
  return kNoNode;
}

std::vector<NodeId> Graph::writers(BufferId id) const {
  const Place at = place(id);
  const uint64_t to = at.offset + tensor(id).size();
  std::vector<NodeId> out;
  for (const Entry& entry : entries_[lane::index(at.root)]) {
    if (!entry.writes || !meet(entry.from, entry.to, at.offset, to)) continue;
    if (out.empty() || out.back() != entry.node) out.push_back(entry.node);
  }
  return out;
}

NodeId Graph::sole_reader(BufferId id) const {
  if (!lane::present(id) || outlives(id)) return kNoNode;
  NodeId found = kNoNode;
  const Place at = place(id);
  const uint64_t to = at.offset + tensor(id).size();
  for (const Entry& entry : entries_[lane::index(at.root)]) {
    if (!entry.reads || !meet(entry.from, entry.to, at.offset, to) || entry.node == found) continue;
    if (present(found)) return kNoNode;
    found = entry.node;
  }
  return found;
}

bool Graph::outlives(BufferId id) const { return outlives_[lane::index(id)]; }

std::optional<Miss> Graph::blocked(NodeId from, NodeId to, std::span<const NodeId> group) const {
  const NodeId low = std::min(from, to), high = std::max(from, to);
  for (const Access& access : accesses_[index(from)]) {
    const std::vector<Entry>& entries = entries_[lane::index(access.root)];
    auto entry = std::upper_bound(entries.begin(), entries.end(), low,
                                  [](NodeId node, const Entry& e) { return node < e.node; });
    for (; entry != entries.end() && entry->node < high; ++entry) {
      if (!entry->touches() || !(access.writes || entry->writes) ||
          !meet(access.from, access.to, entry->from, entry->to))
        continue;
      if (contains(group, entry->node)) continue;
      return Miss{access.writes ? "a launch between touches what it writes" : "a launch between writes what it reads",
                  access.root};
    }
  }
  return std::nullopt;
}

std::optional<Miss> Graph::check(const Rewrite& rewrite) const {
  std::vector<NodeId> nodes = rewrite.vanish;
  for (const auto& [node, launch] : rewrite.become) nodes.push_back(node);
  std::vector<BufferId> written, read;
  for (const auto& [node, launch] : rewrite.become) {
    for (const Use& use : lane::uses(launch, lane::Numerics::Precise)) {
      if (use.writes) written.push_back(use.buffer);
      if (use.reads) read.push_back(use.buffer);
    }
  }
  const auto in = [](const std::vector<BufferId>& set, BufferId id) {
    return std::find(set.begin(), set.end(), id) != set.end();
  };
  for (const NodeId node : nodes) {
    for (const Use& use : lane::uses(at(node).launch, lane::Numerics::Precise)) {
      if (!use.writes || in(written, use.buffer)) continue;
      if (outlives(use.buffer)) return Miss{"the value between is wanted after the step", use.buffer};
      for (const NodeId reader : readers(use.buffer)) {
        if (!contains(nodes, reader)) return Miss{"the value between has another reader", use.buffer};
      }
      if (in(read, use.buffer)) return Miss{"the value between is read inside", use.buffer};
    }
  }
  for (const auto& [node, launch] : rewrite.become) {
    if (const auto found = feeds_itself(launch)) return found;
    for (const NodeId gone : rewrite.vanish) {
      if (const auto blocker = blocked(gone, node, nodes)) return blocker;
    }
  }
  return std::nullopt;
}

// The parts of a launch run side by side: none may read what another writes. (What a fold hands over inside is no read
// of it, and an update in place is both.)
std::optional<Miss> Graph::feeds_itself(const lane::Launch& launch) const {
  const std::vector<Access> all = accesses(launch);
  for (const Access& read : all) {
    if (!read.reads || read.writes) continue;
    for (const Access& write : all) {
      if (!write.writes || write.root != read.root || !meet(read.from, read.to, write.from, write.to)) continue;
      return Miss{"one of its parts reads what another writes", read.root};
    }
  }
  return std::nullopt;
}

std::vector<graph::OpId> Graph::apply(Rewrite&& rewrite) {
  TW_CHECK(!rewrite.become.empty() && !rewrite.vanish.empty(), "a rewrite makes fewer launches of several");
  std::vector<graph::OpId> gone;
  for (const NodeId node : rewrite.vanish) {
    gone = united(std::move(gone), at(node).covers);
    leave(node);
    nodes_[index(node)] = {};
  }
  std::vector<graph::OpId> all = gone;
  bool first = true;
  for (auto& [id, launch] : rewrite.become) {
    leave(id);
    Node& node = nodes_[index(id)];
    node.launch = std::move(launch);
    if (first || rewrite.cover_all) node.covers = united(std::move(node.covers), gone);
    all = united(std::move(all), node.covers);
    first = false;
    enter(id);
  }
  return all;
}

}  // namespace tw::fuse
