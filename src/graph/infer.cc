#include "graph/infer.h"

#include <fmt/format.h>

#include <limits>
#include <type_traits>

#include "base/check.h"

namespace tw::graph {
namespace {

// The operands of one op while they are checked: the first that does not fit is kept, later ones are not looked at.
class Operands {
 public:
  Operands(const StepGraph& graph, const OpSpec& spec, const std::vector<TensorId>& ids)
      : graph_(graph), op_(op_name(spec)), decls_(operand_decls(spec)), ids_(ids) {
    if (ids.size() != decls_.size()) {
      fault_ =
          refuse(RefusalKind::Malformed, op_, fmt::format("has {} operands, expected {}", ids.size(), decls_.size()));
      return;
    }
    for (size_t i = 0; i < ids.size() && !fault_; ++i) check_present(i);
  }

  [[nodiscard]] bool ok() const { return !fault_; }
  [[nodiscard]] bool has(std::string_view name) const { return id(name) != kNoTensor; }
  // Requires the operand to be present.
  [[nodiscard]] const Tensor& operator[](std::string_view name) const { return graph_.at(id(name)); }

  void expect(bool fits, std::string_view name, std::string_view expected) {
    if (fits || fault_) return;
    const Tensor& tensor = (*this)[name];
    fault_ = refuse(RefusalKind::Malformed, op_,
                    fmt::format("operand {} ({}) is {}, expected {}", name, tensor.name, shape_text(tensor), expected));
  }
  void expect_shape(std::string_view name, uint64_t rows, uint64_t cols) {
    if (!has(name)) return;
    const Tensor& t = (*this)[name];
    expect(t.rows == rows && t.cols == cols, name, fmt::format("{}x{}", rows, cols));
  }
  // The columns are `count` units of equal width. Requires count > 0.
  void expect_units(std::string_view name, uint64_t count, std::string_view unit) {
    const uint64_t cols = (*this)[name].cols;
    expect(cols > 0 && cols % count == 0, name, fmt::format("columns in {} equal {}", count, unit));
  }
  void expect_element(std::string_view name, Element element) {
    if (has(name))
      expect((*this)[name].element == element, name, element == Element::F32 ? "f32 values" : "i32 values");
  }
  void expect_f32() {
    for (const OperandDecl& decl : decls_)
      if (decl.name != "position" && decl.name != "index") expect_element(decl.name, Element::F32);
  }
  // The single item that names a row or position.
  void expect_item(std::string_view name) {
    expect_shape(name, 1, 1);
    expect_element(name, Element::I32);
  }

  [[nodiscard]] Result<Shape> result(uint64_t rows, uint64_t cols, Element element = Element::F32) const {
    constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
    if (fault_) return *fault_;
    if (rows == 0 || cols == 0 || rows > kMost || cols > kMost)
      return refuse(RefusalKind::Malformed, op_,
                    fmt::format("its result is {}x{}, expected 1 to {} rows and columns", rows, cols, kMost));
    return Shape{static_cast<uint32_t>(rows), static_cast<uint32_t>(cols), element};
  }

 private:
  void check_present(size_t i) {
    if (ids_[i] == kNoTensor) {
      if (!decls_[i].optional)
        fault_ = refuse(RefusalKind::Missing, op_, fmt::format("operand {} is absent", decls_[i].name));
    } else if (index(ids_[i]) >= graph_.tensors.size()) {
      fault_ = refuse(RefusalKind::Malformed, op_,
                      fmt::format("operand {} is tensor {}, the graph has {}", decls_[i].name, index(ids_[i]),
                                  graph_.tensors.size()));
    }
  }
  [[nodiscard]] TensorId id(std::string_view name) const {
    for (size_t i = 0; i < decls_.size(); ++i)
      if (decls_[i].name == name) return ids_[i];
    TW_CHECK(false, "op {} declares no operand {}", op_, name);
  }

  const StepGraph& graph_;
  std::string_view op_;
  std::span<const OperandDecl> decls_;
  const std::vector<TensorId>& ids_;
  std::optional<Refusal> fault_;
};

Result<Shape> same_as(const Operands& o, std::string_view name) {
  return o.result(o[name].rows, o[name].cols, o[name].element);
}

Result<Shape> infer(const Matmul&, Operands& o) {
  o.expect_element("w", o["x"].element);
  o.expect(o["w"].rows == o["x"].cols, "w", fmt::format("{} rows, the columns of x", o["x"].cols));
  return o.result(o["x"].rows, o["w"].cols, o["x"].element);
}

Result<Shape> infer(const HeadMatmul& op, Operands& o) {
  o.expect_f32();
  const uint64_t heads = op.heads;
  if (!op.shared) o.expect_units("x", heads, "heads");
  const uint64_t in = op.shared ? o["x"].cols : o["x"].cols / heads;
  const Tensor& w = o["w"];
  o.expect(w.rows % heads == 0, "w", fmt::format("rows in {} equal heads", heads));
  if (op.rows_out)
    o.expect(w.cols == in, "w", fmt::format("{} columns, a head's inputs", in));
  else
    o.expect(w.rows / heads == in, "w", fmt::format("{} rows, {} heads of {} inputs", heads * in, heads, in));
  return o.result(o["x"].rows, op.rows_out ? w.rows : heads * w.cols);
}

Result<Shape> infer(const Elementwise&, Operands& o) {
  o.expect_shape("b", o["a"].rows, o["a"].cols);
  o.expect_element("b", o["a"].element);
  return same_as(o, "a");
}

Result<Shape> infer(const RowBroadcast& op, Operands& o) {
  if (op.scalar)
    o.expect_shape("b", o["a"].rows, 1);
  else
    o.expect_shape("b", 1, o["a"].cols);
  o.expect_element("b", o["a"].element);
  return same_as(o, "a");
}

Result<Shape> infer_f32_map(Operands& o) {
  o.expect_f32();
  return same_as(o, "x");
}
Result<Shape> infer_i32_map(Operands& o) {
  o.expect_element("x", Element::I32);
  return same_as(o, "x");
}
Result<Shape> infer(const Scale&, Operands& o) { return infer_f32_map(o); }
Result<Shape> infer(const Softcap&, Operands& o) { return infer_f32_map(o); }
Result<Shape> infer(const IntRequant&, Operands& o) { return infer_i32_map(o); }
Result<Shape> infer(const IntClamp&, Operands& o) { return infer_i32_map(o); }
Result<Shape> infer(const Activate& op, Operands& o) {
  return op.kind == ActivationKind::Relu ? same_as(o, "x") : infer_f32_map(o);
}

Result<Shape> infer(const Transpose&, Operands& o) { return o.result(o["x"].cols, o["x"].rows, o["x"].element); }

Result<Shape> infer(const HeadSlice& op, Operands& o) {
  const Tensor& x = o["x"];
  o.expect(x.cols % op.every == 0, "x", fmt::format("columns in units of {}", op.every));
  return o.result(x.rows, uint64_t{x.cols} / op.every * op.width, x.element);
}

Result<Shape> infer(const Join& op, Operands& o) {
  o.expect_units("a", op.heads, "heads");
  o.expect_units("b", op.heads, "heads");
  o.expect(o["b"].rows == o["a"].rows, "b", fmt::format("{} rows, as a has", o["a"].rows));
  o.expect_element("b", o["a"].element);
  return o.result(o["a"].rows, uint64_t{o["a"].cols} + o["b"].cols, o["a"].element);
}

Result<Shape> infer(const RowGather&, Operands& o) {
  o.expect_item("index");
  return o.result(1, o["table"].cols, o["table"].element);
}

Result<Shape> infer(const RowsGather&, Operands& o) {
  o.expect(o["index"].cols == 1, "index", "one column");
  o.expect_element("index", Element::I32);
  return o.result(o["index"].rows, o["table"].cols, o["table"].element);
}

Result<Shape> infer(const SetRows&, Operands& o) {
  const Tensor& table = o["table"];
  o.expect(o["src"].cols == table.cols && o["src"].rows <= table.rows, "src",
           fmt::format("{} columns and at most {} rows, as the table has", table.cols, table.rows));
  o.expect_element("src", table.element);
  o.expect_item("index");
  return same_as(o, "table");
}

Result<Shape> infer(const ArgMax&, Operands& o) { return o.result(o["x"].rows, 1, Element::I32); }

// The width of the units that a row op works on. Requires nothing: a width that does not fit is recorded.
uint64_t unit_width(Operands& o, uint32_t width) {
  const uint64_t unit = width == 0 ? o["x"].cols : width;
  o.expect(unit > 0 && o["x"].cols % unit == 0, "x", fmt::format("columns in units of {}", unit));
  return unit;
}

Result<Shape> infer(const RowNorm& op, Operands& o) {
  o.expect_f32();
  const uint64_t unit = unit_width(o, op.width);
  o.expect_shape("weight", 1, unit);
  o.expect_shape("residual", o["x"].rows, o["x"].cols);
  o.expect_shape("bias", 1, unit);
  return same_as(o, "x");
}

Result<Shape> infer(const Softmax&, Operands& o) {
  o.expect_f32();
  const uint64_t rows = o["x"].rows;
  if (o.has("sinks"))
    o.expect(o["sinks"].cols == 1 && (o["sinks"].rows == rows || o["sinks"].rows == 1), "sinks",
             fmt::format("{}x1 or 1x1", rows));
  return same_as(o, "x");
}

Result<Shape> infer(const L2Norm& op, Operands& o) {
  o.expect_f32();
  unit_width(o, op.width);
  return same_as(o, "x");
}

Result<Shape> infer(const Rope& op, Operands& o) {
  o.expect_f32();
  unit_width(o, op.width);
  const Tensor& cos = o["cos"];
  o.expect(cos.cols == op.half && cos.rows >= o["x"].rows, "cos",
           fmt::format("{} columns and at least {} rows", op.half, o["x"].rows));
  o.expect_shape("sin", cos.rows, cos.cols);
  o.expect_item("position");
  return same_as(o, "x");
}

// What every attention asks of its caches: units of the query's width, as many value as key rows.
Result<Shape> infer_attention(Operands& o, uint64_t heads, uint64_t kv_heads, Element element) {
  o.expect_units("q", heads, "heads");
  const uint64_t key_width = o["q"].cols / heads;
  o.expect(o["k"].cols == kv_heads * key_width, "k",
           fmt::format("{} columns, {} heads of {}", kv_heads * key_width, kv_heads, key_width));
  o.expect(o["v"].rows == o["k"].rows, "v", fmt::format("{} rows, as k has", o["k"].rows));
  o.expect_units("v", kv_heads, "heads");
  for (const std::string_view name : {"q", "k", "v"}) o.expect_element(name, element);
  return o.result(o["q"].rows, o["v"].cols / kv_heads * heads, element);
}

Result<Shape> infer(const Attention& op, Operands& o) {
  o.expect_item("position");
  o.expect_shape("sinks", 1, op.heads);
  o.expect_element("sinks", Element::F32);
  if (o.has("position"))
    o.expect(o["q"].rows <= o["k"].rows, "q", fmt::format("at most {} rows, the positions of k", o["k"].rows));
  return infer_attention(o, op.heads, op.kv_heads, Element::F32);
}

Result<Shape> infer(const FullAttention& op, Operands& o) {
  return infer_attention(o, op.heads, op.heads, Element::F32);
}

Result<Shape> infer(const LutAttention& op, Operands& o) {
  o.expect(o["q"].rows == 1, "q", "one row");
  o.expect(o["table"].rows == 1, "table", "one row");
  o.expect_element("table", Element::I32);
  o.expect_item("position");
  return infer_attention(o, op.heads, op.kv_heads, Element::I32);
}

Result<Shape> infer(const CausalConv&, Operands& o) {
  o.expect_f32();
  o.expect(o["w"].cols == o["x"].cols, "w", fmt::format("{} columns, the channels of x", o["x"].cols));
  o.expect_shape("ring", o["w"].rows, o["w"].cols);
  return same_as(o, "x");
}

Result<Shape> infer(const Decay&, Operands& o) {
  o.expect_f32();
  o.expect_shape("bias", 1, o["x"].cols);
  o.expect_shape("rate", 1, o["x"].cols);
  return same_as(o, "x");
}

Result<Shape> infer(const GatedDelta& op, Operands& o) {
  o.expect_f32();
  const uint64_t rows = o["q"].rows, heads = op.value_heads;
  o.expect_units("q", op.key_heads, "key heads");
  const uint64_t d = o["q"].cols / op.key_heads;
  o.expect_shape("k", rows, o["q"].cols);
  o.expect_shape("v", rows, heads * d);
  o.expect_shape("z", rows, heads * d);
  o.expect_shape("beta", rows, heads);
  const Tensor& alpha = o["alpha"];
  o.expect(alpha.rows == rows && (alpha.cols == heads || alpha.cols == heads * d), "alpha",
           fmt::format("{}x{} or {}x{}", rows, heads, rows, heads * d));
  o.expect_shape("state", heads * d, d);
  o.expect_shape("norm", 1, d);
  return o.result(rows, heads * d);
}

Result<Shape> infer(const Moe& op, Operands& o) {
  o.expect_f32();
  const uint64_t d = o["x"].cols, experts = op.experts, hidden = op.hidden;
  o.expect_shape("router", d, experts);
  o.expect_shape("gate", experts * hidden, d);
  o.expect_shape("up", experts * hidden, d);
  o.expect_shape("down", experts * d, hidden);
  o.expect_shape("router_bias", 1, experts);
  o.expect_shape("gate_bias", experts, hidden);
  o.expect_shape("up_bias", experts, hidden);
  o.expect_shape("down_bias", experts, d);
  o.expect_shape("select_bias", 1, experts);
  o.expect_shape("expert_scale", 1, experts);
  return same_as(o, "x");
}

}  // namespace

Result<Shape> infer_result(const StepGraph& graph, const OpSpec& spec, const std::vector<TensorId>& operands) {
  std::vector<std::string> faults = field_faults(spec);
  if (!faults.empty()) return refuse(RefusalKind::Malformed, op_name(spec), std::move(faults.front()));
  Operands checked(graph, spec, operands);
  if (!checked.ok()) return checked.result(1, 1);
  return std::visit([&](const auto& op) { return infer(op, checked); }, spec);
}

}  // namespace tw::graph
