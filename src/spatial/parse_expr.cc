#include "spatial/text.h"
#include "spatial/text_parser.h"

namespace tw::spatial {
namespace {

using graph::Token;

// Reads a body without recursion: a frame is a call whose arguments are not all there yet. Nodes come out children
// first.
class ExprReader {
 public:
  explicit ExprReader(TokenReader& in) : in_(in) {}

  Result<Expr> run() {
    for (;;) {
      TW_TRY(const std::optional<NodeId> leaf, open());
      if (!leaf) continue;
      TW_TRY(const bool done, close(*leaf));
      if (done) return Expr(std::move(nodes_));
    }
  }

 private:
  enum class Kind : uint8_t { Binary, Unary, Shr, Rsqrt, Where };
  struct Frame {
    Kind kind = Kind::Unary;
    BinaryOp binary{};
    UnaryOp unary{};
    std::vector<Pred> conds;
    std::vector<NodeId> args;
  };

  NodeId push(Node node) {
    nodes_.push_back(node);
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  // A leaf as its node; of a call its name and "(", and nothing.
  Result<std::optional<NodeId>> open() {
    const Token token = in_.peek();
    if (!in_.at_word()) return in_.expected("an expression");
    if (in_.at_number()) {
      TW_TRY(const uint32_t number, operand());
      return std::optional(push(OperandNode{number}));
    }
    if (double value = 0; parse_real(token.text, value)) {
      TW_TRY_VOID(in_.advance());
      return std::optional(push(ConstNode{value}));
    }
    Frame frame;
    if (const auto binary = enum_of_name<BinaryOp>(token.text)) {
      frame.kind = Kind::Binary;
      frame.binary = *binary;
    } else if (const auto unary = enum_of_name<UnaryOp>(token.text)) {
      frame.unary = *unary;
    } else if (token.text == "shr") {
      frame.kind = Kind::Shr;
    } else if (token.text == "rsqrt") {
      frame.kind = Kind::Rsqrt;
    } else if (token.text == "where") {
      frame.kind = Kind::Where;
    } else {
      return in_.expected("a number, an operand such as @0, or a function of the algebra");
    }
    TW_TRY_VOID(in_.advance());
    TW_TRY_VOID(in_.mark('('));
    if (frame.kind == Kind::Where) TW_TRY_VOID(cond(frame));
    frames_.push_back(std::move(frame));
    return std::optional<NodeId>();
  }

  // Gives a finished node to the call it is an argument of, closing calls as they fill. True when no call is open.
  Result<bool> close(NodeId node) {
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      frame.args.push_back(node);
      TW_TRY(const bool full, after_argument(frame));
      if (!full) return false;
      TW_TRY(node, finish(frame));
      TW_TRY_VOID(in_.mark(')'));
      frames_.pop_back();
    }
    return true;
  }

  // What stands between arguments; false when another follows.
  Result<bool> after_argument(Frame& frame) {
    switch (frame.kind) {
      case Kind::Unary:
      case Kind::Shr:
      case Kind::Rsqrt: return true;
      case Kind::Binary:
        if (frame.args.size() == 2) return true;
        TW_TRY_VOID(in_.mark(','));
        return false;
      case Kind::Where:
        if (frame.args.size() > frame.conds.size()) return true;
        TW_TRY_VOID(in_.mark(','));
        if (in_.at_word() && enum_of_name<Axis>(in_.peek().text)) TW_TRY_VOID(cond(frame));
        return false;
    }
    return true;
  }

  Result<NodeId> finish(const Frame& frame) {
    switch (frame.kind) {
      case Kind::Binary: return push(BinaryNode{frame.binary, frame.args[0], frame.args[1]});
      case Kind::Unary: return push(UnaryNode{frame.unary, frame.args[0]});
      case Kind::Shr: {
        TW_TRY_VOID(in_.mark(','));
        TW_TRY(const uint32_t by, in_.value<uint32_t>());
        return push(ShrNode{frame.args[0], by});
      }
      case Kind::Rsqrt: {
        TW_TRY_VOID(in_.mark(','));
        TW_TRY(const uint64_t eps_nano, in_.value<uint64_t>());
        TW_TRY_VOID(in_.mark(','));
        TW_TRY(const uint64_t over, in_.value<uint64_t>());
        return push(RsqrtNode{frame.args[0], eps_nano, over});
      }
      case Kind::Where: break;
    }
    NodeId rest = frame.args.back();
    for (size_t i = frame.conds.size(); i-- > 0;) rest = push(SelectNode{frame.conds[i], frame.args[i], rest});
    return rest;
  }

  // AXIS below|from BOUND ,
  Result<void> cond(Frame& frame) {
    Pred pred;
    TW_TRY(pred.axis, in_.value<Axis>());
    const Token relation = in_.peek();
    if (!relation.is_word("below") && !relation.is_word("from")) return in_.expected("below or from");
    pred.at_least = relation.is_word("from");
    TW_TRY_VOID(in_.advance());
    pred.by_operand = in_.at_number();
    if (pred.by_operand) {
      TW_TRY(pred.bound, operand());
    } else {
      TW_TRY(pred.bound, in_.value<int64_t>());
    }
    frame.conds.push_back(pred);
    return in_.mark(',');
  }

  Result<uint32_t> operand() { return in_.number("an operand such as @0"); }

  TokenReader& in_;
  std::vector<Node> nodes_;
  std::vector<Frame> frames_;
};

}  // namespace

Result<Expr> read_expr(TokenReader& in) { return ExprReader(in).run(); }

Result<Expr> parse_expr(std::string_view text, std::string_view label) {
  TokenReader in(text, label);
  TW_TRY_VOID(in.start());
  TW_TRY(Expr body, read_expr(in));
  if (!in.at_end()) return in.expected("the end of the text");
  return body;
}

}  // namespace tw::spatial
