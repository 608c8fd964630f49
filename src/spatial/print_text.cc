#include <fmt/format.h>

#include <iterator>
#include <unordered_map>

#include "graph/lexer.h"
#include "spatial/text.h"
#include "spatial/words.h"

namespace tw::spatial {
namespace {

// A name as a word or quoted; one that begins as an id does is quoted.
std::string name_text(std::string_view name) {
  std::string text = graph::name_text(name);
  return text.starts_with('@') ? fmt::format("\"{}\"", text) : text;
}

// ---- bodies: from the root, with a stack, since bands nest as deep as there are heads ----

class BodyPrinter {
 public:
  explicit BodyPrinter(const Expr& body) : body_(body) {}

  std::string run() {
    visit(body_.root());
    while (!stack_.empty()) {
      const Piece piece = stack_.back();
      stack_.pop_back();
      out_ += piece.text;
      if (piece.node) visit(*piece.node);
    }
    return std::move(out_);
  }

 private:
  struct Piece {
    std::string text;
    std::optional<NodeId> node;
  };
  // Pieces are put down last first.
  void close() { stack_.push_back({")", {}}); }
  void next(std::string text, NodeId node) { stack_.push_back({std::move(text), node}); }

  void visit(NodeId id) {
    std::visit([this](const auto& node) { put(node); }, body_.at(id));
  }
  void put(const OperandNode& n) { out_ += fmt::format("@{}", n.operand); }
  void put(const ConstNode& n) { out_ += real_text(n.value); }
  void put(const BinaryNode& n) {
    out_ += fmt::format("{}(", word(n.op));
    close();
    next(", ", n.right);
    next("", n.left);
  }
  void put(const ShrNode& n) {
    out_ += "shr(";
    stack_.push_back({fmt::format(", {})", n.by), {}});
    next("", n.arg);
  }
  void put(const UnaryNode& n) {
    out_ += fmt::format("{}(", word(n.op));
    close();
    next("", n.arg);
  }
  void put(const RsqrtNode& n) {
    out_ += "rsqrt(";
    stack_.push_back({fmt::format(", {}, {})", n.eps_nano, n.over), {}});
    next("", n.arg);
  }
  // A select in the place of the last branch goes on as a further case of the same list.
  void put(const SelectNode& n) {
    out_ += "where(";
    close();
    put_cases(n);
  }
  void put_cases(const SelectNode& first) {
    std::vector<Piece> pieces;
    const SelectNode* n = &first;
    for (bool more = false;; more = true) {
      pieces.push_back({fmt::format("{}{}, ", more ? ", " : "", cond(n->cond)), n->then});
      const auto* nested = std::get_if<SelectNode>(&body_.at(n->otherwise));
      if (!nested) break;
      n = nested;
    }
    pieces.push_back({", ", n->otherwise});
    stack_.insert(stack_.end(), std::make_move_iterator(pieces.rbegin()), std::make_move_iterator(pieces.rend()));
  }
  static std::string cond(const Pred& p) {
    return fmt::format("{} {} {}{}", word(p.axis), p.at_least ? "from" : "below", p.by_operand ? "@" : "", p.bound);
  }

  const Expr& body_;
  std::string out_;
  std::vector<Piece> stack_;
};

// ---- programs ----

class Printer {
 public:
  explicit Printer(const Program& program) : p_(program) {
    for (uint32_t i = static_cast<uint32_t>(p_.tensors.size()); i-- > 0;) {
      auto& names = p_.tensors[i].result() ? results_ : sources_;
      names[p_.tensors[i].name] = i;
    }
    for (uint32_t i = static_cast<uint32_t>(p_.buffers.size()); i-- > 0;) buffers_[p_.buffers[i].name] = i;
  }

  std::string run() {
    line("program {} target={} tile={}x{} accumulator={}", name_text(p_.name), name_text(p_.target), p_.tile.rows,
         p_.tile.cols, name(p_.accumulator));
    put("claim {}", p_.claim.exact ? "exact" : "approx");
    line("{}", p_.claim.reason.empty() ? std::string() : fmt::format(" {}", name_text(p_.claim.reason)));
    for (const Tensor& tensor : p_.tensors) print_tensor(tensor);
    for (const Buffer& b : p_.buffers)
      line("{} {} page={} depth={} {}", word(b.kind), name_text(b.name), b.page_tiles, b.depth, name(b.dtype));
    for (const Stage& stage : p_.stages) print_stage(stage);
    print_edges();
    print_work();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    put(format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  // A name where it means this id, else the id.
  using Names = std::unordered_map<std::string_view, uint32_t>;
  template <class All>
  static std::string reference(const Names& names, const All& all, uint32_t id) {
    if (id < all.size())
      if (const auto at = names.find(all[id].name); at != names.end() && at->second == id)
        return name_text(all[id].name);
    return fmt::format("@{}", id);
  }
  [[nodiscard]] std::string ref(BufferId id) const { return reference(buffers_, p_.buffers, index(id)); }
  [[nodiscard]] std::string source(TensorId id) const {
    const bool updated = index(id) < p_.tensors.size() && !sources_.contains(p_.tensors[index(id)].name);
    return reference(updated ? results_ : sources_, p_.tensors, index(id));
  }
  [[nodiscard]] std::string result(TensorId id) const {
    const bool read_only = index(id) < p_.tensors.size() && !results_.contains(p_.tensors[index(id)].name);
    return reference(read_only ? sources_ : results_, p_.tensors, index(id));
  }
  [[nodiscard]] std::string list(const std::vector<BufferId>& ids) const {
    std::string text;
    for (const BufferId id : ids) text += (text.empty() ? "" : ", ") + ref(id);
    return fmt::format("({})", text);
  }

  void print_tensor(const Tensor& t) {
    put("tensor {} {} {}x{} {} ", name_text(t.name), word(t.role), t.rows, t.cols, name(t.dtype));
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
    if (stage.level != FoldLevel::Body) put(" level={}", word(stage.level));
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
        put("{}{}:{}", i ? ", " : "", word(pattern.origin.steps[i].var), pattern.origin.steps[i].stride);
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
      put("{}{}:{}", i ? ", " : "", word(g.iters[i].axis), g.iters[i].extent);
      if (g.iters[i].reduce) put(":{}", word(*g.iters[i].reduce));
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
      if (map.coef[a] != 0) text += fmt::format(" {}:{}", word(static_cast<Axis>(a)), map.coef[a]);
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
    line("edges {}", p_.edges.size());
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
  Names sources_, results_, buffers_;
  std::string out_;
};

}  // namespace

std::string print(const Expr& body) { return body.well_formed() ? BodyPrinter(body).run() : "malformed"; }

std::string print(const Program& program) { return Printer(program).run(); }

std::string print(const Composition& step) {
  std::string text = fmt::format("step {}\n", name_text(step.name));
  for (const std::string& output : step.outputs) text += fmt::format("output {}\n", name_text(output));
  for (const ComposedSection& section : step.sections) text += fmt::format("\n{}", print(section.program));
  return text;
}

}  // namespace tw::spatial
