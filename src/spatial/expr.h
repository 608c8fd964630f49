#pragma once

// The scalar expression of a Generic stage: a tree in a flat arena. A node's children come before it, each node but the
// last has exactly one parent, and the last is the root; so equal trees are equal vectors, and the nodes of a subtree
// are the run that ends in its root.
//
//   Expr x = arg(0), scale = arg(1);
//   Expr body = select(less(Axis::Col, 8), x * scale, 0.0);
//
// Meaning. A stage computes in integers when every operand its body mentions is of an integer precision and the body is
// integral(): exactly, in 64 bits, and a result outside the destination is a fault. Otherwise it computes in reals,
// each node rounded to the accumulator precision, and the result is rounded once more to the destination. Operands are
// read lazily: the branch of a select that is not taken reads nothing.

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "spatial/access.h"

namespace tw::spatial {

using NodeId = uint32_t;

struct OperandNode {
  uint32_t operand = 0;
  bool operator==(const OperandNode&) const = default;
};
// Equal when the bits are.
struct ConstNode {
  double value = 0;
  bool operator==(const ConstNode& o) const {
    return std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(o.value);
  }
};

// Min and Max: of two numbers the smaller and larger, the other one when one is NaN. FloorDiv rounds down; by zero it
// is a fault in integers.
enum class BinaryOp : uint8_t { Add, Sub, Mul, Min, Max, FloorDiv };
struct BinaryNode {
  BinaryOp op = BinaryOp::Add;
  NodeId left = 0;
  NodeId right = 0;
  bool operator==(const BinaryNode&) const = default;
};
// Arithmetic shift right of an integer: floor(arg / 2^by).
struct ShrNode {
  NodeId arg = 0;
  uint32_t by = 0;
  bool operator==(const ShrNode&) const = default;
};

// Silu(x) = x / (1 + e^-x), one function.
enum class UnaryOp : uint8_t { Exp, Ln, Recip, Silu };
struct UnaryNode {
  UnaryOp op = UnaryOp::Exp;
  NodeId arg = 0;
  bool operator==(const UnaryNode&) const = default;
};
// 1 / sqrt(arg / over + eps), eps = eps_nano * 1e-9.
struct RsqrtNode {
  NodeId arg = 0;
  uint64_t eps_nano = 0;
  uint64_t over = 1;
  bool operator==(const RsqrtNode&) const = default;
};

// axis < bound or axis >= bound, the bound a constant or the integer value of an operand read through its own map.
struct Pred {
  Axis axis = Axis::Col;
  bool at_least = false;    // else less
  bool by_operand = false;  // else by constant
  int64_t bound = 0;        // the constant, or the operand's number
  bool operator==(const Pred&) const = default;
};
struct SelectNode {
  Pred cond;
  NodeId then = 0;
  NodeId otherwise = 0;
  bool operator==(const SelectNode&) const = default;
};

using Node = std::variant<OperandNode, ConstNode, BinaryNode, ShrNode, UnaryNode, RsqrtNode, SelectNode>;

class Expr {
 public:
  Expr() = default;                                              // no expression: not a body
  Expr(double value) { nodes_.emplace_back(ConstNode{value}); }  // NOLINT(google-explicit-constructor)
  // Takes a node list as it is: well_formed() may be false.
  explicit Expr(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}

  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] NodeId root() const { return static_cast<NodeId>(nodes_.size() - 1); }
  [[nodiscard]] const Node& at(NodeId id) const { return nodes_[id]; }
  [[nodiscard]] bool well_formed() const;

  bool operator==(const Expr&) const = default;

  // Appends the nodes of another tree and says where its root came to lie.
  NodeId append(const Expr& tree);
  void push(Node node) { nodes_.push_back(node); }

 private:
  std::vector<Node> nodes_;
};

// The children of a node, in order.
struct Children {
  std::array<NodeId, 2> ids{};
  uint32_t count = 0;
  [[nodiscard]] const NodeId* begin() const { return ids.data(); }
  [[nodiscard]] const NodeId* end() const { return ids.data() + count; }
};
Children children(const Node& node);

// ---- building ----

Expr arg(uint32_t operand);
Expr operator+(Expr a, const Expr& b);
Expr operator-(Expr a, const Expr& b);
Expr operator*(Expr a, const Expr& b);
Expr min(Expr a, const Expr& b);
Expr max(Expr a, const Expr& b);
Expr floor_div(Expr a, const Expr& b);
Expr shr(Expr a, uint32_t by);
Expr exp(Expr a);
Expr ln(Expr a);
Expr recip(Expr a);
Expr silu(Expr a);
Expr rsqrt(Expr a, uint64_t eps_nano, uint64_t over);

constexpr Pred less(Axis axis, int64_t bound) { return {axis, false, false, bound}; }
constexpr Pred at_least(Axis axis, int64_t bound) { return {axis, true, false, bound}; }
constexpr Pred less_than_operand(Axis axis, uint32_t operand) { return {axis, false, true, operand}; }
constexpr Pred at_least_operand(Axis axis, uint32_t operand) { return {axis, true, true, operand}; }
Expr select(Pred cond, Expr then, const Expr& otherwise);

// Body i where the axis is below end_i and not below the ends before it, the last body from there on: n bands are n - 1
// selects. Requires at least one band and ends that increase; the end of the last is not looked at.
struct Band {
  int64_t end = 0;
  Expr body;
};
Expr banded(std::span<const Band> bands, Axis axis = Axis::Col);

// 1 / (1 + e^(0 - x))
Expr sigmoid(const Expr& x);
// cap * tanh(x / cap) as 2 cap / (1 + e^(x * (-2 / cap))) - cap: exact in both tails.
Expr soft_cap(const Expr& x, double cap);
// ln(1 + e^x) as max(x, 0) + ln(1 + e^-|x|): exact in both tails.
Expr softplus(const Expr& x);

// ---- looking ----

// No function of a real and only integral constants: what the integer datapath can compute.
bool integral(const Expr& body);
// The operands whose value the body takes, and those its predicates compare with, each once, in order.
struct OperandUses {
  std::vector<uint32_t> values;
  std::vector<uint32_t> bounds;
};
OperandUses operand_uses(const Expr& body);

}  // namespace tw::spatial
