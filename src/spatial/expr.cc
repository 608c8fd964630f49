#include "spatial/expr.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tw::spatial {
namespace {

// Every child of the node moved by a distance.
struct Mover {
  NodeId by;
  Node operator()(OperandNode n) const { return n; }
  Node operator()(ConstNode n) const { return n; }
  Node operator()(BinaryNode n) const { return BinaryNode{n.op, n.left + by, n.right + by}; }
  Node operator()(ShrNode n) const { return ShrNode{n.arg + by, n.by}; }
  Node operator()(UnaryNode n) const { return UnaryNode{n.op, n.arg + by}; }
  Node operator()(RsqrtNode n) const { return RsqrtNode{n.arg + by, n.eps_nano, n.over}; }
  Node operator()(SelectNode n) const { return SelectNode{n.cond, n.then + by, n.otherwise + by}; }
};

Expr binary(BinaryOp op, Expr a, const Expr& b) {
  TW_CHECK(!a.empty() && !b.empty(), "an operand of an expression is empty");
  const NodeId left = a.root();
  const NodeId right = a.append(b);
  a.push(BinaryNode{op, left, right});
  return a;
}

Expr unary(UnaryOp op, Expr a) {
  TW_CHECK(!a.empty(), "an operand of an expression is empty");
  const NodeId arg = a.root();
  a.push(UnaryNode{op, arg});
  return a;
}

void sort_unique(std::vector<uint32_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

Children children(const Node& node) {
  if (const auto* n = std::get_if<BinaryNode>(&node)) return {{n->left, n->right}, 2};
  if (const auto* n = std::get_if<ShrNode>(&node)) return {{n->arg, 0}, 1};
  if (const auto* n = std::get_if<UnaryNode>(&node)) return {{n->arg, 0}, 1};
  if (const auto* n = std::get_if<RsqrtNode>(&node)) return {{n->arg, 0}, 1};
  if (const auto* n = std::get_if<SelectNode>(&node)) return {{n->then, n->otherwise}, 2};
  return {};
}

bool Expr::well_formed() const {
  if (nodes_.empty()) return false;
  // The first node of each subtree: children must lie back to back, in order, right before their parent.
  std::vector<NodeId> first(nodes_.size());
  for (NodeId i = 0; i < nodes_.size(); ++i) {
    const Children kids = children(nodes_[i]);
    NodeId begin = i;
    for (uint32_t c = kids.count; c-- > 0;) {
      if (begin == 0 || kids.ids[c] != begin - 1) return false;
      begin = first[kids.ids[c]];
    }
    first[i] = begin;
  }
  return first.back() == 0;
}

NodeId Expr::append(const Expr& tree) {
  const auto by = static_cast<NodeId>(nodes_.size());
  for (size_t i = 0, count = tree.nodes_.size(); i < count; ++i)
    nodes_.push_back(std::visit(Mover{by}, tree.nodes_[i]));
  return root();
}

Expr arg(uint32_t operand) { return Expr(std::vector<Node>{OperandNode{operand}}); }
Expr operator+(Expr a, const Expr& b) { return binary(BinaryOp::Add, std::move(a), b); }
Expr operator-(Expr a, const Expr& b) { return binary(BinaryOp::Sub, std::move(a), b); }
Expr operator*(Expr a, const Expr& b) { return binary(BinaryOp::Mul, std::move(a), b); }
Expr min(Expr a, const Expr& b) { return binary(BinaryOp::Min, std::move(a), b); }
Expr max(Expr a, const Expr& b) { return binary(BinaryOp::Max, std::move(a), b); }
Expr floor_div(Expr a, const Expr& b) { return binary(BinaryOp::FloorDiv, std::move(a), b); }
Expr exp(Expr a) { return unary(UnaryOp::Exp, std::move(a)); }
Expr ln(Expr a) { return unary(UnaryOp::Ln, std::move(a)); }
Expr recip(Expr a) { return unary(UnaryOp::Recip, std::move(a)); }
Expr silu(Expr a) { return unary(UnaryOp::Silu, std::move(a)); }

Expr shr(Expr a, uint32_t by) {
  TW_CHECK(!a.empty() && by < 64, "a shift of {} bits", by);
  const NodeId argument = a.root();
  a.push(ShrNode{argument, by});
  return a;
}

Expr rsqrt(Expr a, uint64_t eps_nano, uint64_t over) {
  TW_CHECK(!a.empty() && over > 0, "a mean over {} values", over);
  const NodeId argument = a.root();
  a.push(RsqrtNode{argument, eps_nano, over});
  return a;
}

Expr select(Pred cond, Expr then, const Expr& otherwise) {
  TW_CHECK(!then.empty() && !otherwise.empty(), "a branch of a select is empty");
  const NodeId first = then.root();
  const NodeId second = then.append(otherwise);
  then.push(SelectNode{cond, first, second});
  return then;
}

Expr banded(std::span<const Band> bands, Axis axis) {
  TW_CHECK(!bands.empty(), "there are no bands");
  // Bodies first to last, then the selects from the innermost out: each has the one before it as its other branch.
  Expr all;
  std::vector<NodeId> roots;
  for (size_t i = 0; i < bands.size(); ++i) {
    TW_CHECK(i + 1 == bands.size() || i == 0 || bands[i - 1].end < bands[i].end,
             "band {} ends at {}, the one before at {}", i, bands[i].end, bands[i - 1].end);
    TW_CHECK(!bands[i].body.empty(), "band {} has no body", i);
    roots.push_back(all.append(bands[i].body));
  }
  for (size_t i = bands.size() - 1; i-- > 0;) all.push(SelectNode{less(axis, bands[i].end), roots[i], all.root()});
  return all;
}

Expr sigmoid(const Expr& x) { return recip(Expr(1.0) + exp(Expr(0.0) - x)); }

Expr soft_cap(const Expr& x, double cap) {
  return Expr(2 * cap) * recip(Expr(1.0) + exp(x * Expr(-2 / cap))) - Expr(cap);
}

Expr softplus(const Expr& x) { return max(x, 0.0) + ln(Expr(1.0) + exp(Expr(0.0) - max(x, Expr(0.0) - x))); }

bool integral(const Expr& body) {
  return std::all_of(body.nodes().begin(), body.nodes().end(), [](const Node& node) {
    if (std::holds_alternative<UnaryNode>(node) || std::holds_alternative<RsqrtNode>(node)) return false;
    const auto* constant = std::get_if<ConstNode>(&node);
    return !constant ||
           (std::trunc(constant->value) == constant->value && constant->value >= -0x1p63 && constant->value < 0x1p63);
  });
}

OperandUses operand_uses(const Expr& body) {
  OperandUses uses;
  for (const Node& node : body.nodes()) {
    if (const auto* n = std::get_if<OperandNode>(&node)) uses.values.push_back(n->operand);
    if (const auto* n = std::get_if<SelectNode>(&node); n && n->cond.by_operand)
      uses.bounds.push_back(static_cast<uint32_t>(n->cond.bound));
  }
  sort_unique(uses.values);
  sort_unique(uses.bounds);
  return uses;
}

}  // namespace tw::spatial
