#include "spatial/certify/recheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <unordered_map>

#include "spatial/certify/fingerprint.h"

namespace tw::spatial {
namespace {

constexpr int64_t kUnset = INT64_MIN;
constexpr size_t kMostFaults = 32;

class Recheck {
 public:
  Recheck(const Program& program, const Target& target, const Certificate& certificate)
      : p_(program), target_(target), c_(certificate) {}

  std::vector<std::string> run() {
    identity();
    if (!faults_.empty()) return std::move(faults_);
    memory();
    flow();
    moves();
    results();
    states();
    reads();
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void fault(fmt::format_string<Args...> text, Args&&... args) {
    if (faults_.size() < kMostFaults) faults_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  template <class T>
  void same(std::string_view what, const T& claimed, const T& counted) {
    if (claimed != counted) fault("{} is {}, the certificate says {}", what, counted, claimed);
  }

  void identity() {
    same("the program", c_.program, p_.name);
    same("the fingerprint", c_.fingerprint, fingerprint(p_));
    same("the target", c_.target, target_.name);
    same("the program's target", p_.target, target_.name);
    if (!std::equal(c_.checks.begin(), c_.checks.end(), kCertificateChecks.begin(), kCertificateChecks.end()))
      fault("the certificate lists {} checks, expected the {} there are", c_.checks.size(), kCertificateChecks.size());
    if (p_.tile != target_.tile) fault("the program is of {}x{} tiles", p_.tile.rows, p_.tile.cols);
    if (!target_.precisions.contains(p_.accumulator)) fault("the target lacks {} sums", name(p_.accumulator));
    for (const Capability capability : required_capabilities(p_))
      if (!target_.capabilities.contains(capability)) fault("the target lacks {}", name(capability));
    for (const Stage& stage : p_.stages)
      for (const BufferId in : stage.ins)
        if (stage.matmul() && !target_.matmul_operands.contains(p_.at(in).dtype))
          fault("the target multiplies no tiles of {}", name(p_.at(in).dtype));
    same("the number of buffers", c_.buffers.size(), p_.buffers.size());
  }

  // ---- memory ----

  void memory() {
    uint64_t total = 0, widest = 0;
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      const Buffer& b = p_.buffers[i];
      const uint64_t page = b.page_tiles * p_.tile.rows * p_.tile.cols * bytes_of(b.dtype);
      same(fmt::format("a page of {}", b.name), c_.buffers[i].page_bytes, page);
      same(fmt::format("the depth of {}", b.name), c_.buffers[i].depth, b.depth);
      if (!target_.precisions.contains(b.dtype)) fault("{} is {}, which the target lacks", b.name, name(b.dtype));
      total += page * b.depth;
    }
    for (const Stage& stage : p_.stages)
      if (stage.compute()) widest = std::max(widest, p_.at(stage.outs[0]).page_tiles);
    same("the footprint", c_.footprint, total);
    same("the local memory", c_.local_bytes, target_.local_bytes);
    same("the accumulator", c_.accumulator_tiles, uint64_t{target_.accumulator_tiles});
    same("the widest computed page", c_.widest_computed_page, widest);
    if (total > target_.local_bytes) fault("{} bytes do not fit {}", total, target_.local_bytes);
    if (widest > target_.accumulator_tiles) fault("{} tiles do not fit {}", widest, target_.accumulator_tiles);
  }

  // ---- pages of one item, step by step ----

  struct Count {
    int64_t pages = 0, high = 0, pushes = 0, pops = 0;
    std::vector<size_t> writers, readers;
  };

  static bool names(const Stage& s, LoopVar var) { return s.pattern() && s.pattern()->origin.names(var); }

  // Whether the stage runs in this round. One that runs less often does so where the rounds it serves begin (a load) or
  // end (a store).
  [[nodiscard]] bool runs_now(const Stage& s, uint64_t sub, uint64_t block, uint64_t blocks) const {
    if (s.compute()) return true;
    const bool load = s.load() != nullptr;
    if (!names(s, LoopVar::SubH) && !names(s, LoopVar::SubW) && sub != (load ? 0 : p_.work.plan.sub_blocks() - 1))
      return false;
    return s.level != FoldLevel::Body || names(s, LoopVar::KBlock) || block == (load ? 0 : blocks - 1);
  }

  void step(size_t i, bool last_block, std::vector<Count>& counts) {
    const Stage& s = p_.stages[i];
    for (const BufferId in : s.ins)
      if (counts[index(in)].pages < 1) fault("{} finds no page in {}", s.name, p_.at(in).name);
    for (const BufferId to : s.outs) {
      if (s.matmul() && !last_block) continue;
      Count& c = counts[index(to)];
      ++c.pushes;
      c.high = std::max(c.high, ++c.pages);
      if (c.pages > int64_t{p_.at(to).depth}) fault("{} finds no room in {}", s.name, p_.at(to).name);
    }
    std::vector<BufferId> ins = s.ins;
    std::sort(ins.begin(), ins.end());
    ins.erase(std::unique(ins.begin(), ins.end()), ins.end());
    for (const BufferId in : ins) {
      Count& c = counts[index(in)];
      const bool updates = c.writers.size() == 2 && c.writers[1] == i;
      const bool held =
          s.level == FoldLevel::Body && c.writers.size() == 1 && p_.stages[c.writers[0]].level == FoldLevel::Prologue;
      if (!updates && (c.readers.back() != i || (held && !last_block))) continue;
      ++c.pops;
      --c.pages;
    }
  }

  void flow() {
    std::vector<Count> counts(p_.buffers.size());
    std::array<std::vector<size_t>, 3> levels;
    for (size_t i = 0; i < p_.stages.size(); ++i) {
      levels.at(static_cast<size_t>(p_.stages[i].level)).push_back(i);
      const auto note = [i](std::vector<size_t>& list) {
        if (list.empty() || list.back() != i) list.push_back(i);
      };
      for (const BufferId in : p_.stages[i].ins) note(counts[index(in)].readers);
      for (const BufferId to : p_.stages[i].outs) note(counts[index(to)].writers);
    }
    for (size_t b = 0; b < counts.size(); ++b)
      if (counts[b].writers.empty() || counts[b].readers.empty()) return fault("{} has one end", p_.buffers[b].name);
    const uint64_t blocks = p_.work.plan.num_blocks;
    const auto go = [&](size_t level, uint64_t sub, uint64_t block) {
      for (const size_t i : levels.at(level))
        if (runs_now(p_.stages[i], sub, block, blocks)) step(i, block + 1 == blocks, counts);
    };
    const size_t before = faults_.size();
    for (uint64_t sub = 0; sub < p_.work.plan.sub_blocks() && faults_.size() == before; ++sub) {
      go(0, sub, 0);
      for (uint64_t block = 0; block < blocks && faults_.size() == before; ++block) go(1, sub, block);
      go(2, sub, blocks - 1);
    }
    compare(counts);
  }

  void compare(const std::vector<Count>& counts) {
    for (size_t b = 0; b < counts.size(); ++b) {
      const Count& c = counts[b];
      if (c.pages != 0) fault("{} keeps {} pages", p_.buffers[b].name, c.pages);
      same(fmt::format("the most pages of {}", p_.buffers[b].name), int64_t{c_.buffers[b].high_water}, c.high);
      const bool loaded = p_.stages[c.writers[0]].load() != nullptr;
      if (p_.buffers[b].kind == BufferKind::Fifo && c.readers.size() > 1)
        for (const size_t r : c.readers)
          if (!loaded || !p_.stages[r].compute()) fault("{} has {} readers", p_.buffers[b].name, c.readers.size());
    }
    same("the number of edges", c_.edges.size(), p_.edges.size());
    for (size_t e = 0; e < std::min(c_.edges.size(), p_.edges.size()); ++e) {
      const EdgeEvidence& edge = c_.edges[e];
      if (Edge{edge.producer, edge.buffer, edge.consumer} != p_.edges[e]) {
        fault("edge {} is another one", e);
        continue;
      }
      same(fmt::format("pushes of edge {}", e), edge.pushes, static_cast<uint64_t>(counts[index(edge.buffer)].pushes));
      same(fmt::format("pops of edge {}", e), edge.pops, static_cast<uint64_t>(counts[index(edge.buffer)].pops));
      if (edge.pushes != edge.pops) fault("edge {} pushes {} pages and pops {}", e, edge.pushes, edge.pops);
    }
  }

  // ---- tiles ----

  // visit(item, sub-block, block, tile) for every tile of the movement, its index at the given value.
  void walk(const Stage& s, int64_t v, const std::function<void(size_t, uint64_t, uint64_t, uint64_t)>& visit) const {
    const AccessPattern& a = *s.pattern();
    const bool subs = names(s, LoopVar::SubH) || names(s, LoopVar::SubW);
    const uint64_t sub_w = p_.work.plan.sub_w();
    for (size_t i = 0; i < p_.work.items.size(); ++i)
      for (uint64_t sub = 0; sub < (subs ? p_.work.plan.sub_blocks() : 1); ++sub)
        for (uint64_t k = 0; k < (names(s, LoopVar::KBlock) ? p_.work.plan.num_blocks : 1); ++k) {
          const std::array<uint64_t, kLoopVars> at{p_.work.items[i].y, p_.work.items[i].x, sub / sub_w, sub % sub_w, k};
          uint64_t origin = a.origin.base;
          for (const Step& step : a.origin.steps) origin += step.stride * at.at(static_cast<size_t>(step.var));
          if (const auto& t = a.origin.indirect)
            origin += static_cast<uint64_t>(v) / t->elems_per_tile * t->tile_stride;
          for (uint64_t tile = 0; tile < a.block_h * a.block_w; ++tile)
            visit(i, sub, k, origin + tile / a.block_w * a.stride_h + tile % a.block_w * a.stride_w);
        }
  }
  static int64_t low_index(const Stage& s) {
    return s.pattern()->origin.indirect ? s.pattern()->origin.indirect->low : 0;
  }

  [[nodiscard]] uint64_t tiles_of(const Tensor& tensor) const {
    const auto up = [](uint64_t n, uint64_t by) { return (n + by - 1) / by; };
    return up(tensor.rows, p_.tile.rows) * up(tensor.cols, p_.tile.cols);
  }

  void moves() {
    size_t next = 0;
    for (uint32_t i = 0; i < p_.stages.size(); ++i) {
      const Stage& s = p_.stages[i];
      if (!s.pattern()) continue;
      if (next >= c_.moves.size() || c_.moves[next].stage != StageId{i}) return fault("{} has no range", s.name);
      uint64_t first = UINT64_MAX, last = 0;
      const auto note = [&](size_t, uint64_t, uint64_t, uint64_t tile) {
        first = std::min(first, tile);
        last = std::max(last, tile);
      };
      walk(s, low_index(s), note);
      if (const auto& t = s.pattern()->origin.indirect) {
        walk(s, t->high, note);
        if (t->high > int_max(p_.at(t->index).dtype)) fault("{} has an index of {}", s.name, t->high);
      }
      same(fmt::format("the first tile of {}", s.name), c_.moves[next].first, first);
      same(fmt::format("the last tile of {}", s.name), c_.moves[next].last, last);
      if (last >= tiles_of(p_.at(*s.tensor()))) fault("{} leaves its tensor at tile {}", s.name, last);
      ++next;
    }
    same("the number of movements", c_.moves.size(), next);
  }

  void results() {
    size_t next = 0;
    for (uint32_t t = 0; t < p_.tensors.size(); ++t) {
      const Tensor& tensor = p_.tensors[t];
      if (!tensor.result()) continue;
      const bool output = tensor.role == TensorRole::Output;
      std::unordered_map<uint64_t, size_t> owner;
      uint64_t written = 0;
      for (const Stage& s : p_.stages) {
        if (!s.store() || s.tensor() != TensorId{t}) continue;
        if (output && p_.work.k_trip && names(s, LoopVar::KBlock))
          fault("{} stores {} once a block, and data counts the blocks", s.name, tensor.name);
        walk(s, low_index(s), [&](size_t item, uint64_t, uint64_t, uint64_t tile) {
          const auto [at, fresh] = owner.emplace(tile, item);
          ++written;
          if (!fresh && (output || at->second != item)) fault("tile {} of {} is stored twice", tile, tensor.name);
        });
      }
      if (next >= c_.results.size() || c_.results[next].tensor != TensorId{t})
        return fault("{} has no coverage", tensor.name);
      same(fmt::format("the tiles written of {}", tensor.name), c_.results[next].written, written);
      same(fmt::format("the tiles of {}", tensor.name), c_.results[next].tiles, tiles_of(tensor));
      if (output && written != tiles_of(tensor)) fault("{} is not written whole", tensor.name);
      if (output && next == 0) rectangles(tensor, owner);
      ++next;
    }
    same("the number of results", c_.results.size(), next);
  }

  void rectangles(const Tensor& tensor, const std::unordered_map<uint64_t, size_t>& owner) {
    const uint64_t width = (tensor.cols + p_.tile.cols - 1) / p_.tile.cols;
    uint64_t owned = 0;
    for (size_t i = 0; i < p_.work.items.size(); ++i) {
      const TileRect& r = p_.work.items[i].out;
      for (uint64_t tile = 0; tile < r.rows * r.cols; ++tile, ++owned) {
        const auto at = owner.find((r.row + tile / r.cols) * width + r.col + tile % r.cols);
        if (at == owner.end() || at->second != i) fault("item {} does not store what it owns of {}", i, tensor.name);
      }
    }
    if (owned != owner.size()) fault("the items own {} tiles of {} and store {}", owned, tensor.name, owner.size());
  }

  // ---- states: what is read is not what another item writes, nor what this one has written ----

  // Whether the store's page or index comes from the load's page.
  [[nodiscard]] bool comes_from(const Stage& store, const Stage& load) const {
    std::vector<bool> page(p_.buffers.size());
    for (const Stage& s : p_.stages) {
      const bool from = &s == &load || std::any_of(s.ins.begin(), s.ins.end(),
                                                   [&](BufferId in) { return static_cast<bool>(page[index(in)]); });
      if (&s == &store) return from;
      for (const BufferId to : s.outs) page[index(to)] = page[index(to)] || from;
    }
    return false;
  }

  // Whether two pages are computed alike from alike loads.
  [[nodiscard]] bool alike(BufferId a, BufferId b) const {
    if (a == b) return true;
    const auto writer = [&](BufferId page) {
      return std::find_if(p_.stages.begin(), p_.stages.end(), [&](const Stage& s) { return s.writes(page); });
    };
    const auto from = writer(a), to = writer(b);
    if (from == p_.stages.end() || to == p_.stages.end() || from->ins.size() != to->ins.size()) return false;
    if (from->load() ? !to->load() || from->tensor() != to->tensor() || !same_address(*from->pattern(), *to->pattern())
                     : from->kind != to->kind)
      return false;
    for (size_t i = 0; i < from->ins.size(); ++i)
      if (!alike(from->ins[i], to->ins[i])) return false;
    return p_.at(a).dtype == p_.at(b).dtype;
  }
  [[nodiscard]] bool same_address(AccessPattern a, const AccessPattern& b) const {
    if (a.origin.indirect && b.origin.indirect && alike(a.origin.indirect->index, b.origin.indirect->index))
      a.origin.indirect->index = b.origin.indirect->index;
    return a == b;
  }

  void states() {
    for (const Stage& store : p_.stages) {
      if (!store.store() || p_.at(*store.tensor()).role != TensorRole::State) continue;
      for (const Stage& load : p_.stages) {
        if (!load.load() || p_.at(*load.tensor()).name != p_.at(*store.tensor()).name) continue;
        const bool by_data = load.pattern()->origin.indirect || store.pattern()->origin.indirect;
        if (by_data && (!same_address(*load.pattern(), *store.pattern()) || !comes_from(store, load)))
          fault("{} reads where {} may write", load.name, store.name);
        else
          state_tiles(load, store);
      }
    }
  }

  void state_tiles(const Stage& load, const Stage& store) {
    using When = std::array<uint64_t, 3>;  // item, sub-block, block
    std::map<uint64_t, When> writes;
    walk(store, low_index(store), [&](size_t item, uint64_t sub, uint64_t block, uint64_t tile) {
      writes.emplace(tile, When{item, sub, block});
    });
    const bool waits = comes_from(store, load);
    walk(load, low_index(load), [&](size_t item, uint64_t sub, uint64_t block, uint64_t tile) {
      const auto at = writes.find(tile);
      if (at == writes.end()) return;
      const auto& [other, store_sub, store_block] = at->second;
      const bool before = !(names(store, LoopVar::SubH) || names(store, LoopVar::SubW)) || sub < store_sub ||
                          (sub == store_sub && (!names(store, LoopVar::KBlock) || block <= store_block));
      if (other != item || !waits || !before) fault("{} reads tile {}, which {} writes", load.name, tile, store.name);
    });
  }

  // ---- reads: every point of every loop nest ----

  struct Offsets {
    int64_t first = kUnset, last = kUnset;
  };

  static void visit(const Generic& g, NodeId id, const std::array<int64_t, kAxes>& at, std::vector<Offsets>& seen) {
    const Node& node = g.body.at(id);
    const auto operand = [&](uint32_t i) {
      for (size_t steps = 0; steps <= g.ins.size(); ++steps) {
        const int64_t offset = affine_offset(g.ins[i], at);
        Offsets& o = seen[i];
        o.first = o.first == kUnset ? offset : std::min(o.first, offset);
        o.last = o.last == kUnset ? offset : std::max(o.last, offset);
        if (!g.ins[i].indirect || g.ins[i].indirect->operand == i) return;
        i = g.ins[i].indirect->operand;
      }
    };
    if (const auto* n = std::get_if<OperandNode>(&node)) operand(n->operand);
    const auto* select = std::get_if<SelectNode>(&node);
    if (!select) {
      for (const NodeId child : children(node)) visit(g, child, at, seen);
      return;
    }
    const Pred& pred = select->cond;
    if (pred.by_operand) operand(static_cast<uint32_t>(pred.bound));
    const bool holds = (at.at(static_cast<size_t>(pred.axis)) >= pred.bound) == pred.at_least;
    if (pred.by_operand || holds) visit(g, select->then, at, seen);
    if (pred.by_operand || !holds) visit(g, select->otherwise, at, seen);
  }

  void reads() {
    size_t next = 0;
    for (uint32_t i = 0; i < p_.stages.size(); ++i) {
      const Generic* g = p_.stages[i].generic();
      if (!g) continue;
      std::vector<Offsets> seen(g->ins.size());
      const auto extent = [&](Axis axis) { return static_cast<int64_t>(g->extent(axis)); };
      for (int64_t r = 0; r < extent(Axis::Row); ++r)
        for (int64_t c = 0; c < extent(Axis::Col); ++c)
          for (int64_t k = 0; k < extent(Axis::K); ++k) visit(*g, g->body.root(), {r, c, k}, seen);
      for (uint32_t o = 0; o < seen.size(); ++o)
        if (seen[o].first != kUnset) read(StageId{i}, o, *g, seen[o], next++);
    }
    same("the number of reads", c_.reads.size(), next);
  }

  void read(StageId id, uint32_t operand, const Generic& g, const Offsets& seen, size_t next) {
    const std::string what = fmt::format("operand {} of {}", operand, p_.at(id).name);
    if (next >= c_.reads.size() || c_.reads[next].stage != id || c_.reads[next].operand != operand)
      return fault("{} has no range", what);
    const ReadEvidence& claim = c_.reads[next];
    same(fmt::format("the first element of {}", what), claim.first, seen.first);
    same(fmt::format("the last element of {}", what), claim.last, seen.last);
    int64_t first = seen.first, last = seen.last;
    const auto& term = g.ins[operand].indirect;
    if (term && term->stride != 0) {
      const int64_t reach = term->stride * (static_cast<int64_t>(term->modulus) - 1);
      (reach < 0 ? first : last) += reach;
    }
    const BufferId page = p_.at(id).ins[operand];
    const bool leaves = first < 0 || last >= static_cast<int64_t>(p_.tile.rows * p_.width(page));
    if (leaves && (!term || term->stride == 0)) fault("{} reads outside its page, {} to {}", what, first, last);
    same(fmt::format("whether an index is checked at {}", what), claim.checked_at_run, leaves);
  }

  const Program& p_;
  const Target& target_;
  const Certificate& c_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> recheck(const Program& program, const Target& target, const Certificate& certificate) {
  return Recheck(program, target, certificate).run();
}

}  // namespace tw::spatial
