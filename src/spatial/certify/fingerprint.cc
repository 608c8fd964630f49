#include "spatial/certify/fingerprint.h"

#include <fmt/format.h>

#include <bit>

namespace tw::spatial {
namespace {

// Multiplication by an odd number and a fold of the high half: both lanes see every bit, along different paths.
uint64_t mixed(uint64_t state, uint64_t word, uint64_t factor) {
  state = (state ^ word) * factor;
  return state ^ (state >> 29);
}

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

template <class T>
void add_values(Fingerprint& f, const std::shared_ptr<const std::vector<T>>& values) {
  f.add(values ? values->size() : 0);
  if (!values) return;
  for (const T value : *values) f.add(bits(value));
}

struct AddInit {
  Fingerprint& f;
  void operator()(const ZeroInit&) const {}
  void operator()(const GivenInit&) const {}
  void operator()(const ExternalInit&) const {}
  void operator()(const RealInit& init) const { f.add(bits(init.value)); }
  void operator()(const IntegerInit& init) const { f.add(bits(init.value)); }
  void operator()(const IntegerValues& init) const { add_values(f, init.values); }
  void operator()(const RealValues& init) const { add_values(f, init.values); }
};

struct AddNode {
  Fingerprint& f;
  void operator()(const OperandNode& n) const { f.add(n.operand); }
  void operator()(const ConstNode& n) const { f.add(bits(n.value)); }
  void operator()(const BinaryNode& n) const {
    f.add(static_cast<uint64_t>(n.op));
    f.add(n.left);
    f.add(n.right);
  }
  void operator()(const ShrNode& n) const {
    f.add(n.arg);
    f.add(n.by);
  }
  void operator()(const UnaryNode& n) const {
    f.add(static_cast<uint64_t>(n.op));
    f.add(n.arg);
  }
  void operator()(const RsqrtNode& n) const {
    f.add(n.arg);
    f.add(n.eps_nano);
    f.add(n.over);
  }
  void operator()(const SelectNode& n) const {
    f.add(static_cast<uint64_t>(n.cond.axis) * 4 + (n.cond.at_least ? 2 : 0) + (n.cond.by_operand ? 1 : 0));
    f.add(bits(n.cond.bound));
    f.add(n.then);
    f.add(n.otherwise);
  }
};

void add_ids(Fingerprint& f, const std::vector<BufferId>& ids) {
  f.add(ids.size());
  for (const BufferId id : ids) f.add(index(id));
}

void add_work(Fingerprint& f, const Work& work) {
  f.add(work.items.size());
  for (const WorkItem& item : work.items)
    for (const uint64_t word : {item.y, item.x, item.out.row, item.out.col, item.out.rows, item.out.cols}) f.add(word);
  const BlockPlan& p = work.plan;
  for (const uint64_t word : {p.per_site_m, p.per_site_n, p.grid_m, p.grid_n, p.num_blocks, p.block_k, p.block_m,
                              p.block_n, work.k_tiles, uint64_t{work.k_trip.has_value()}})
    f.add(word);
  if (!work.k_trip) return;
  const Trip& t = *work.k_trip;
  for (const uint64_t word : {uint64_t{index(t.tensor)}, t.elem, bits(t.low), bits(t.high), bits(t.bias), t.per})
    f.add(word);
}

}  // namespace

void Fingerprint::add(uint64_t word) {
  lanes_[0] = mixed(lanes_[0], word, 0x9e3779b97f4a7c15);
  lanes_[1] = mixed(std::rotl(lanes_[1], 23), word, 0xd1342543de82ef95);
}

void Fingerprint::add(std::string_view text) {
  add(text.size());
  for (const char c : text) add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
}

void Fingerprint::add(const Tensor& tensor) {
  add(tensor.name);
  for (const uint64_t word : {static_cast<uint64_t>(tensor.role), tensor.rows, tensor.cols,
                              static_cast<uint64_t>(tensor.dtype), uint64_t{tensor.init.index()}})
    add(word);
  std::visit(AddInit{*this}, tensor.init);
}

void Fingerprint::add(const AccessPattern& pattern) {
  for (const uint64_t word : {pattern.block_h, pattern.block_w, pattern.stride_h, pattern.stride_w, pattern.origin.base,
                              uint64_t{pattern.origin.steps.size()}, uint64_t{pattern.origin.indirect.has_value()}})
    add(word);
  for (const Step& step : pattern.origin.steps) {
    add(static_cast<uint64_t>(step.var));
    add(step.stride);
  }
  if (!pattern.origin.indirect) return;
  const IndirectTile& t = *pattern.origin.indirect;
  for (const uint64_t word : {uint64_t{index(t.index)}, t.tile_stride, t.elems_per_tile, bits(t.low), bits(t.high)})
    add(word);
}

void Fingerprint::add(const Generic& generic) {
  add(generic.iters.size());
  for (const Iter& iter : generic.iters)
    for (const uint64_t word : {static_cast<uint64_t>(iter.axis), iter.extent,
                                iter.reduce ? 1 + static_cast<uint64_t>(*iter.reduce) : uint64_t{0}})
      add(word);
  add(generic.ins.size());
  for (const ElemAccess& map : generic.ins) {
    add(bits(map.base));
    for (const int64_t coef : map.coef) add(bits(coef));
    add(uint64_t{map.indirect.has_value()});
    if (map.indirect)
      for (const uint64_t word : {uint64_t{map.indirect->operand}, bits(map.indirect->stride), map.indirect->modulus})
        add(word);
  }
  add(generic.body.nodes().size());
  for (const Node& node : generic.body.nodes()) {
    add(node.index());
    std::visit(AddNode{*this}, node);
  }
}

void Fingerprint::add(const Stage& stage) {
  add(stage.name);
  add(static_cast<uint64_t>(stage.level));
  add(stage.kind.index());
  if (const AccessPattern* pattern = stage.pattern()) {
    add(uint64_t{index(*stage.tensor())});
    add(*pattern);
  }
  if (const Generic* generic = stage.generic()) add(*generic);
  if (const MatmulTiles* m = stage.matmul())
    for (const uint32_t word : {m->rows, m->cols, m->inner}) add(uint64_t{word});
  add_ids(*this, stage.ins);
  add_ids(*this, stage.outs);
}

std::string Fingerprint::hex() const { return fmt::format("{:016x}{:016x}", lanes_[0], lanes_[1]); }

std::string fingerprint(const Program& program) {
  Fingerprint f;
  for (const std::string_view text :
       {std::string_view(program.name), std::string_view(program.target), std::string_view(program.claim.reason)})
    f.add(text);
  for (const uint64_t word :
       {uint64_t{program.tile.rows}, uint64_t{program.tile.cols}, static_cast<uint64_t>(program.accumulator),
        uint64_t{program.claim.exact}, uint64_t{program.tensors.size()}, uint64_t{program.buffers.size()},
        uint64_t{program.stages.size()}, uint64_t{program.edges.size()}})
    f.add(word);
  for (const Tensor& tensor : program.tensors) f.add(tensor);
  for (const Buffer& buffer : program.buffers) {
    f.add(std::string_view(buffer.name));
    for (const uint64_t word : {buffer.page_tiles, uint64_t{buffer.depth}, static_cast<uint64_t>(buffer.dtype),
                                static_cast<uint64_t>(buffer.kind)})
      f.add(word);
  }
  for (const Stage& stage : program.stages) f.add(stage);
  for (const Edge& edge : program.edges)
    for (const uint32_t word : {index(edge.producer), index(edge.buffer), index(edge.consumer)}) f.add(uint64_t{word});
  add_work(f, program.work);
  return f.hex();
}

}  // namespace tw::spatial
