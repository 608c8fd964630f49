#include <fmt/format.h>

#include "base/line_writer.h"
#include "graph/lexer.h"
#include "spatial/name_table.h"
#include "spatial/names.h"
#include "spatial/real_text.h"
#include "spatial/text.h"

namespace tw::spatial {
namespace {

// A name as a word or quoted; one that begins as an id does is quoted.
std::string name_text(std::string_view name) {
  std::string text = graph::name_text(name);
  return text.starts_with('@') ? fmt::format("\"{}\"", text) : text;
}

class Printer : LineWriter {
 public:
  explicit Printer(const Program& program) : p_(program) {
    for (uint32_t i = 0; i < p_.tensors.size(); ++i) names_.declare(p_.tensors[i], TensorId{i});
    for (uint32_t i = 0; i < p_.buffers.size(); ++i) names_.declare(p_.buffers[i], BufferId{i});
  }

  std::string run() {
    line("program {} target={} tile={}x{} accumulator={}", name_text(p_.name), name_text(p_.target), p_.tile.rows,
         p_.tile.cols, name(p_.accumulator));
    put("claim {}", p_.claim.exact ? "exact" : "approx");
    line("{}", p_.claim.reason.empty() ? std::string() : fmt::format(" {}", name_text(p_.claim.reason)));
    for (const Tensor& tensor : p_.tensors) print_tensor(tensor);
    for (const Buffer& b : p_.buffers)
      line("{} {} page={} depth={} {}", enum_name(b.kind), name_text(b.name), b.page_tiles, b.depth, name(b.dtype));
    for (const Stage& stage : p_.stages) print_stage(stage);
    print_edges();
    print_work();
    return std::move(out_);
  }

 private:
  // A name where it means this id, else the id.
  template <class Id, class All>
  static std::string reference(std::optional<Id> (NameTable::*find)(std::string_view) const, const NameTable& names,
                               const All& all, Id id) {
    const bool named = index(id) < all.size() && (names.*find)(all[index(id)].name) == id;
    return named ? name_text(all[index(id)].name) : fmt::format("@{}", index(id));
  }
  [[nodiscard]] std::string ref(BufferId id) const { return reference(&NameTable::buffer, names_, p_.buffers, id); }
  [[nodiscard]] std::string source(TensorId id) const { return reference(&NameTable::source, names_, p_.tensors, id); }
  [[nodiscard]] std::string result(TensorId id) const { return reference(&NameTable::result, names_, p_.tensors, id); }
  [[nodiscard]] std::string list(const std::vector<BufferId>& ids) const {
    std::string text;
    for (const BufferId id : ids) text += (text.empty() ? "" : ", ") + ref(id);
    return fmt::format("({})", text);
  }

  void print_tensor(const Tensor& t) {
    put("tensor {} {} {}x{} {} ", name_text(t.name), enum_name(t.role), t.rows, t.cols, name(t.dtype));
    std::visit([this](const auto& init) { print_init(init); }, t.init);
    out_ += '\n';
  }
  void print_init(const ZeroInit&) { put("zero"); }
  void print_init(const RealInit& init) { put("real={}", real_text(init.value)); }
  void print_init(const IntegerInit& init) { put("integer={}", init.value); }
  void print_init(const GivenInit&) { put("given"); }
  void print_init(const ExternalInit&) { put("external"); }
  void print_init(const IntegerValues& init) {
    put("integers=[");
    if (init.values)
      for (size_t i = 0; i < init.values->size(); ++i) put("{}{}", i ? " " : "", (*init.values)[i]);
    put("]");
  }
  void print_init(const RealValues& init) {
    put("reals=[");
    if (init.values)
      for (size_t i = 0; i < init.values->size(); ++i) put("{}{}", i ? " " : "", real_text((*init.values)[i]));
    put("]");
  }

  // ---- stages ----

  void print_stage(const Stage& stage) {
    std::vector<BufferId> ins, outs;  // what reading the line gives
    if (stage.pattern())
      print_move(stage, ins, outs);
    else if (const Generic* generic = stage.generic())
      print_generic(stage, *generic, ins, outs);
    else
      print_matmul(stage, *stage.matmul(), ins, outs);
    if (ins != stage.ins) put(" ins={}", list(stage.ins));
    if (outs != stage.outs) put(" outs={}", list(stage.outs));
    if (stage.level != FoldLevel::Body) put(" level={}", enum_name(stage.level));
    if (stage.generic()) put(" value={}", print(stage.generic()->body));
    out_ += '\n';
  }

  static BufferId first(const std::vector<BufferId>& ids) { return ids.empty() ? BufferId{0} : ids[0]; }

  void print_move(const Stage& stage, std::vector<BufferId>& ins, std::vector<BufferId>& outs) {
    const AccessPattern& pattern = *stage.pattern();
    const bool load = stage.load() != nullptr;
    const BufferId page = first(load ? stage.outs : stage.ins);
    (load ? outs : ins).push_back(page);
    put("{} {} tensor={} page={} block={}x{}", load ? "load" : "store", name_text(stage.name),
        load ? source(*stage.tensor()) : result(*stage.tensor()), ref(page), pattern.block_h, pattern.block_w);
    if (pattern.origin.base != 0) put(" base={}", pattern.origin.base);
    if (!pattern.origin.steps.empty()) {
      put(" steps=(");
      for (size_t i = 0; i < pattern.origin.steps.size(); ++i)
        put("{}{}:{}", i ? ", " : "", enum_name(pattern.origin.steps[i].var), pattern.origin.steps[i].stride);
      put(")");
    }
    if (pattern.stride_h != 0) put(" stride_h={}", pattern.stride_h);
    if (pattern.stride_w != 1) put(" stride_w={}", pattern.stride_w);
    if (!pattern.origin.indirect) return;
    const IndirectTile& i = *pattern.origin.indirect;
    put(" index={} per={} times={} within={}:{}", ref(i.index), i.elems_per_tile, i.tile_stride, i.low, i.high);
    ins.push_back(i.index);
  }

  void print_generic(const Stage& stage, const Generic& g, std::vector<BufferId>& ins, std::vector<BufferId>& outs) {
    put("compute {} space=(", name_text(stage.name));
    for (size_t i = 0; i < g.iters.size(); ++i) {
      put("{}{}:{}", i ? ", " : "", enum_name(g.iters[i].axis), g.iters[i].extent);
      if (g.iters[i].reduce) put(":{}", enum_name(*g.iters[i].reduce));
    }
    put(") reads=(");
    for (size_t i = 0; i < g.ins.size(); ++i) {
      ins.push_back(i < stage.ins.size() ? stage.ins[i] : BufferId{0});
      put("{}{}[{}]", i ? ", " : "", ref(ins.back()), map_text(g.ins[i]));
    }
    outs.push_back(first(stage.outs));
    put(") page={}", ref(outs[0]));
  }
  static std::string map_text(const ElemAccess& map) {
    std::string text = fmt::to_string(map.base);
    for (int a = 0; a < kAxes; ++a)
      if (map.coef[a] != 0) text += fmt::format(" {}:{}", enum_name(static_cast<Axis>(a)), map.coef[a]);
    if (const auto& i = map.indirect) text += fmt::format(" @{}:{}:{}", i->operand, i->stride, i->modulus);
    return text;
  }

  void print_matmul(const Stage& stage, const MatmulTiles& m, std::vector<BufferId>& ins, std::vector<BufferId>& outs) {
    ins = {first(stage.ins), stage.ins.size() > 1 ? stage.ins[1] : BufferId{0}};
    outs = {first(stage.outs)};
    put("matmul {} a={} b={} page={} shape={}x{}x{}", name_text(stage.name), ref(ins[0]), ref(ins[1]), ref(outs[0]),
        m.rows, m.cols, m.inner);
  }

  // ---- edges and work ----

  void print_edges() {
    if (p_.edges == derive_edges(p_)) return;
    if (p_.edges.empty()) line("edge none");
    for (const Edge& e : p_.edges) line("edge {} {} {}", index(e.producer), index(e.buffer), index(e.consumer));
  }

  void print_work() {
    const BlockPlan& plan = p_.work.plan;
    line("plan per_site={}x{} grid={}x{} blocks={} block_k={} block={}x{} k_tiles={}", plan.per_site_m, plan.per_site_n,
         plan.grid_m, plan.grid_n, plan.num_blocks, plan.block_k, plan.block_m, plan.block_n, p_.work.k_tiles);
    if (const auto& t = p_.work.k_trip)
      line("trip tensor={} elem={} admit={}:{} bias={} per={}", source(t->tensor), t->elem, t->low, t->high, t->bias,
           t->per);
    for (const WorkItem& item : p_.work.items)
      line("item {}:{} tile={}:{} size={}x{}", item.y, item.x, item.out.row, item.out.col, item.out.rows,
           item.out.cols);
  }

  const Program& p_;
  NameTable names_;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run(); }

std::string print(const Composition& step) {
  std::string text = fmt::format("step {}\n", name_text(step.name));
  for (const std::string& output : step.outputs) text += fmt::format("output {}\n", name_text(output));
  for (const ComposedSection& section : step.sections) text += fmt::format("\n{}", print(section.program));
  return text;
}

}  // namespace tw::spatial
