#pragma once

// Launches over rows and elements: norms, arithmetic, rotations, quantization. See launch_products.h for `visit`.

#include <optional>
#include <vector>

#include "graph/op.h"
#include "lane/types.h"

namespace tw::lane {

// An RMS norm applied to a norm launch's added operand before it is added.
struct PreNorm {
  BufferId w = kNoBuffer;
  float eps = 0;
  bool operator==(const PreNorm&) const = default;
};

// For each of `rows` rows X of `cols` values (read through `part` when present):
//   A = add row;  A' = pre ? A / sqrt(mean(A^2) + pre.eps) * pre.w : A;  V = add ? X + A' : X;  sum = V
//   Y = V / sqrt(mean(V^2) + eps) * w (+ bias), or the layer norm of V
// A graph row that is normed per head counts as several rows here.
struct Norm {
  static constexpr std::string_view kKind = "rmsnorm";
  BufferId x = kNoBuffer, add = kNoBuffer, sum = kNoBuffer, w = kNoBuffer, bias = kNoBuffer, out = kNoBuffer;
  std::optional<Part> part;
  std::optional<PreNorm> pre;
  std::optional<Dst> into;  // where the plain result lands instead of `out`
  graph::NormKind norm = graph::NormKind::Rms;
  OutForms forms;
  uint64_t rows = 0, cols = 0;
  float eps = 0;
  bool operator==(const Norm&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.read("add", s.add);
    if (s.pre) v.read("pre_w", s.pre->w);
    v.read("w", s.w);
    v.read("bias", s.bias);
    if (present(s.sum)) v.write("sum", s.sum, s.rows * s.cols, OutForms{});
    if (s.into) {
      v.dst("into", *s.into, s.rows, s.cols, true, OutForms{});
      v.write("out", s.out, s.rows * s.cols, OutForms{false, s.forms.quantized});
    } else {
      v.write("out", s.out, s.rows * s.cols, s.forms);
    }
    v.field("part", s.part);
    if (s.pre) v.field("pre_eps", s.pre->eps);
    v.field("norm", s.norm);
    v.field("rows", s.rows);
    v.field("cols", s.cols);
    v.field("eps", s.eps);
  }
};

// y = x / sqrt(sum(x^2) + eps), row by row.
struct L2Norm {
  static constexpr std::string_view kKind = "l2norm";
  BufferId x = kNoBuffer, y = kNoBuffer;
  uint64_t rows = 0, cols = 0;
  float eps = 0;
  bool operator==(const L2Norm&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.write("y", s.y, s.rows * s.cols, OutForms{});
    v.field("rows", s.rows);
    v.field("cols", s.cols);
    v.field("eps", s.eps);
  }
};

// Softmax of every row; sinks: one more logit a row (one for all rows when there is a single one).
struct Softmax {
  static constexpr std::string_view kKind = "softmax";
  BufferId x = kNoBuffer, sinks = kNoBuffer, y = kNoBuffer;
  uint64_t rows = 0, cols = 0;
  bool sink_a_row = false;
  bool operator==(const Softmax&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.read("sinks", s.sinks);
    v.write("y", s.y, s.rows * s.cols, OutForms{});
    v.field("rows", s.rows);
    v.field("cols", s.cols);
    v.field("sink_a_row", s.sink_a_row);
  }
};

// x's quantized form from its plain form, n values.
struct Quant {
  static constexpr std::string_view kKind = "quant";
  BufferId x = kNoBuffer;
  uint64_t n = 0;
  bool operator==(const Quant&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.write("x", s.x, s.n, OutForms{false, true});
    v.field("n", s.n);
  }
};

// out[i] = a[i] (op) act(b[...]). row = 0: b[i]; row = w: b is one row of w values for every row of a, or with `scalar`
// one value a row of w values.
struct Binary {
  static constexpr std::string_view kKind = "binary";
  graph::Arithmetic op = graph::Arithmetic::Add;
  BufferId a = kNoBuffer, b = kNoBuffer, out = kNoBuffer;
  std::optional<graph::ActivationKind> gate;
  uint64_t row = 0;
  bool scalar = false;
  OutForms forms;
  uint64_t n = 0;
  bool operator==(const Binary&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("a", s.a);
    v.read("b", s.b);
    v.write("out", s.out, s.n, s.forms);
    v.field("op", s.op);
    v.field("gate", s.gate);
    v.field("row", s.row);
    v.field("scalar", s.scalar);
    v.field("n", s.n);
  }
};

struct Scale {
  static constexpr std::string_view kKind = "scale";
  BufferId x = kNoBuffer, y = kNoBuffer;
  float factor = 1;
  uint64_t n = 0;
  bool operator==(const Scale&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.write("y", s.y, s.n, OutForms{});
    v.field("factor", s.factor);
    v.field("n", s.n);
  }
};

// out[i] = silu(g[i]) * u[i].
struct SwiGlu {
  static constexpr std::string_view kKind = "swiglu";
  BufferId g = kNoBuffer, u = kNoBuffer, out = kNoBuffer;
  OutForms forms;
  uint64_t n = 0;
  bool operator==(const SwiGlu&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("g", s.g);
    v.read("u", s.u);
    v.write("out", s.out, s.n, s.forms);
    v.field("n", s.n);
  }
};

// y[i] = act(x[i]); with cap > 0 the soft cap cap * tanh(x / cap) instead.
struct Unary {
  static constexpr std::string_view kKind = "unary";
  graph::ActivationKind act = graph::ActivationKind::Silu;
  float cap = 0;
  BufferId x = kNoBuffer, y = kNoBuffer;
  uint64_t n = 0;
  bool operator==(const Unary&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.write("y", s.y, s.n, OutForms{});
    v.field("act", s.act);
    v.field("cap", s.cap);
    v.field("n", s.n);
  }
};

struct HeadNorm {
  BufferId w = kNoBuffer;
  float eps = 0;
  bool operator==(const HeadNorm&) const = default;
};

// Rotary embedding of `heads` heads (over all rows) of `width` values; per_row heads belong to one row. Head u is of
// row r = u / per_row and takes table row P + r, P the item of `position`, or 1 without one. With `norm` the head is
// normed first. `sequences`: row r is sequence r of a batch, at item r of the positions; where y is rows of a table, in
// the one that begins r * next_sequence elements in.
struct Rope {
  static constexpr std::string_view kKind = "rope";
  BufferId x = kNoBuffer, cos = kNoBuffer, sin = kNoBuffer, position = kNoBuffer;
  std::optional<Part> part;
  std::optional<HeadNorm> norm;
  Dst y;
  uint64_t heads = 0, per_row = 0, width = 0, half = 0;
  uint64_t next_sequence = 0;
  bool sequences = false;
  bool operator==(const Rope&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    if (s.norm) v.read("norm_w", s.norm->w);
    v.read("cos", s.cos);
    v.read("sin", s.sin);
    v.read("position", s.position);
    v.dst("y", s.y, s.heads, s.width, true, OutForms{});
    v.field("part", s.part);
    if (s.norm) v.field("norm_eps", s.norm->eps);
    v.field("heads", s.heads);
    v.field("per_row", s.per_row);
    v.field("width", s.width);
    v.field("half", s.half);
    v.field("next_sequence", s.next_sequence);
    v.field("sequences", s.sequences);
  }
};

struct RopeSide {
  BufferId x = kNoBuffer;
  std::optional<Part> part;
  std::optional<HeadNorm> norm;
  Dst y;
  uint64_t heads = 0, per_row = 0;
  uint64_t next_sequence = 0;  // elements from one sequence's table to the next one's in a batch
  bool operator==(const RopeSide&) const = default;
};

// Several rotations that share the row, the tables and the position; `sequences`: row r is sequence r of a batch.
struct RopeParts {
  static constexpr std::string_view kKind = "rope";
  std::vector<RopeSide> sides;
  BufferId cos = kNoBuffer, sin = kNoBuffer, position = kNoBuffer;
  uint64_t width = 0, half = 0;
  bool sequences = false;
  bool operator==(const RopeParts&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    for (auto& side : s.sides) {
      v.read("x", side.x);
      if (side.norm) v.read("norm_w", side.norm->w);
      v.dst("y", side.y, side.heads, s.width, true, OutForms{});
      v.field("part", side.part);
      if (side.norm) v.field("norm_eps", side.norm->eps);
      v.field("heads", side.heads);
      v.field("per_row", side.per_row);
      v.field("next_sequence", side.next_sequence);
    }
    v.read("cos", s.cos);
    v.read("sin", s.sin);
    v.read("position", s.position);
    v.field("width", s.width);
    v.field("half", s.half);
    v.field("sequences", s.sequences);
  }
};

// What the closing arg-max moves on: slot `item` of the token array and the sequence's position.
struct Advance {
  BufferId token = kNoBuffer, position = kNoBuffer;
  uint32_t item = 0;
  bool operator==(const Advance&) const = default;
};

// out[r] = 1 + index of the first maximum of x[r * n ... + n).
struct ArgMax {
  static constexpr std::string_view kKind = "argmax";
  BufferId x = kNoBuffer, out = kNoBuffer;
  uint64_t n = 0, rows = 1;
  std::optional<Advance> advance;
  bool operator==(const ArgMax&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.write("out", s.out, s.rows, OutForms{});
    if (s.advance) {
      v.update("token", s.advance->token);
      v.update("position", s.advance->position);
      v.field("item", s.advance->item);
    }
    v.field("n", s.n);
    v.field("rows", s.rows);
  }
};

}  // namespace tw::lane
