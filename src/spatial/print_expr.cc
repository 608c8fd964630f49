#include <fmt/format.h>

#include <iterator>

#include "spatial/names.h"
#include "spatial/real_text.h"
#include "spatial/text.h"

namespace tw::spatial {
namespace {

// Prints from the root, with a stack: bands nest as deep as there are heads.
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
    out_ += fmt::format("{}(", enum_name(n.op));
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
    out_ += fmt::format("{}(", enum_name(n.op));
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
    return fmt::format("{} {} {}{}", enum_name(p.axis), p.at_least ? "from" : "below", p.by_operand ? "@" : "",
                       p.bound);
  }

  const Expr& body_;
  std::string out_;
  std::vector<Piece> stack_;
};

}  // namespace

std::string print(const Expr& body) { return body.well_formed() ? BodyPrinter(body).run() : "malformed"; }

}  // namespace tw::spatial
