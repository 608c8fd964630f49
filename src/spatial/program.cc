#include "spatial/program.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.h"

namespace tw::spatial {
namespace {

constexpr std::array<std::string_view, 2> kClosedShapes{"Generic", "MatmulTiles"};

std::string_view shape_name(const Generic&) { return "Generic"; }
std::string_view shape_name(const MatmulTiles&) { return "MatmulTiles"; }

// What a node of a body asks of the datapath.
std::optional<Capability> needs(const Node& node) {
  if (std::holds_alternative<RsqrtNode>(node)) return Capability::Rsqrt;
  if (const auto* n = std::get_if<BinaryNode>(&node); n && n->op == BinaryOp::FloorDiv) return Capability::FloorDiv;
  if (const auto* n = std::get_if<UnaryNode>(&node)) {
    constexpr std::array kByOp{Capability::Exp, Capability::Ln, Capability::Recip, Capability::Silu};
    return kByOp.at(static_cast<size_t>(n->op));
  }
  return std::nullopt;
}

void add_generic(const Generic& generic, std::set<Capability>& all) {
  if (generic.pool() == Pool::ArgMax) all.insert(Capability::ArgMax);
  for (size_t i = 0; i < generic.ins.size(); ++i) {
    const std::optional<IndirectTerm>& term = generic.ins[i].indirect;
    if (term && !(term->operand == i && term->stride == 0)) all.insert(Capability::IndirectElements);
  }
  for (const Node& node : generic.body.nodes())
    if (const std::optional<Capability> need = needs(node)) all.insert(*need);
}

}  // namespace

uint64_t Trip::count(int64_t value) const {
  const int64_t span = value + bias;
  if (span <= 0) return 0;
  return (static_cast<uint64_t>(span) + per - 1) / per;
}

uint64_t Program::page_bytes(BufferId id) const { return at(id).page_tiles * tile.size() * bytes_of(at(id).dtype); }

std::optional<TensorId> Program::result() const {
  for (uint32_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].result()) return TensorId{i};
  return std::nullopt;
}

const std::string& Program::subject() const {
  const std::optional<TensorId> tensor = result();
  return tensor ? at(*tensor).name : name;
}

uint64_t footprint(const Program& program) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const std::optional<uint64_t> pages = checked_mul(program.page_bytes(BufferId{i}), program.buffers[i].depth);
    bytes = pages ? checked_add(bytes, *pages).value_or(kMost) : kMost;
  }
  return bytes;
}

bool computes_integers(const Program& program, const Stage& stage) {
  const auto integer = [&](BufferId id) { return is_integer(program.at(id).dtype); };
  const Generic* generic = stage.generic();
  if (!generic) return std::all_of(stage.ins.begin(), stage.ins.end(), integer);
  if (!integral(generic->body)) return false;
  const std::vector<uint32_t> operands = operand_uses(generic->body).values;
  if (operands.empty()) return integer(stage.outs[0]);
  return std::all_of(operands.begin(), operands.end(), [&](uint32_t operand) { return integer(stage.ins[operand]); });
}

std::set<std::string_view> compute_shapes(const Program& program) {
  std::set<std::string_view> shapes;
  for (const Stage& stage : program.stages)
    if (const Compute* compute = stage.compute())
      shapes.insert(std::visit([](const auto& op) { return shape_name(op); }, compute->op));
  return shapes;
}

bool is_closed_algebra(const std::set<std::string_view>& shapes) {
  return std::includes(kClosedShapes.begin(), kClosedShapes.end(), shapes.begin(), shapes.end());
}

bool is_closed_algebra(const Program& program) { return is_closed_algebra(compute_shapes(program)); }

std::vector<Edge> derive_edges(const Program& program) {
  // Backwards, so that the next reader of each buffer is known at its writer.
  std::vector<std::optional<StageId>> next_reader(program.buffers.size());
  std::vector<Edge> edges;
  const auto known = [&](BufferId id) { return index(id) < program.buffers.size(); };
  for (size_t i = program.stages.size(); i-- > 0;) {
    const Stage& stage = program.stages[i];
    const StageId id{static_cast<uint32_t>(i)};
    for (size_t o = stage.outs.size(); o-- > 0;)
      if (known(stage.outs[o]) && next_reader[index(stage.outs[o])])
        edges.push_back({id, stage.outs[o], *next_reader[index(stage.outs[o])]});
    for (const BufferId in : stage.ins)
      if (known(in)) next_reader[index(in)] = id;
  }
  std::reverse(edges.begin(), edges.end());
  return edges;
}

std::set<Capability> required_capabilities(const Program& program) {
  std::set<Capability> all;
  if (program.work.k_trip) all.insert(Capability::DataTrips);
  for (const Stage& stage : program.stages) {
    if (const AccessPattern* pattern = stage.pattern(); pattern && pattern->origin.indirect)
      all.insert(Capability::IndirectTiles);
    if (const Generic* generic = stage.generic()) add_generic(*generic, all);
  }
  return all;
}

}  // namespace tw::spatial
