#pragma once

// The ops of the step graph: one struct an op, the declaration from which the text form, the verifier and the
// evaluators work. Every op is defined by the double-precision evaluator (graph/evaluate.h); the comment above each
// struct says the same in a formula.
//
// Conventions. Tensors are row-major, rows x cols. Rows, positions and items named by an index tensor or a literal
// count from 1. m is the number of activation rows; an operand marked optional may be absent. A "unit" is a run of
// equal width into which a row is cut (a head).

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>

namespace tw::graph {

enum class Access : uint8_t { Read, Update };  // Update: read and written in place (a cache, a ring, a memory, a table)

struct OperandDecl {
  std::string_view name;
  Access access = Access::Read;
  bool optional = false;
};

// A field of an op for the text form: name and member pointer. The member types are the ones listed at print/parse:
// float, double, uint32_t, int32_t, bool, the enums below, Window, MoeAct, std::optional of these.
template <class Op, class T>
struct Field {
  std::string_view name;
  T Op::*member;
};
template <class Op, class T>
constexpr Field<Op, T> field(std::string_view name, T Op::*member) {
  return {name, member};
}

// ---- enumerations ----

enum class Arithmetic : uint8_t { Add, Sub, Mul, Div, Min, Max };
enum class ActivationKind : uint8_t { Silu, Sigmoid, GeluTanh, Relu, Softplus, Tanh, Exp };
enum class NormKind : uint8_t { Rms, Layer };
enum class ScoreKind : uint8_t { Softmax, Sigmoid };
enum class GateKind : uint8_t { Silu, Sigmoid };
// Key head of value head h, with hv value heads and hk key heads: Modulo h mod hk; Grouped floor(h / (hv / hk)).
enum class KeyHeadOf : uint8_t { Modulo, Grouped };

// Which of the n attended positions of a row are kept: all; the last `size`; or the row's own aligned run of `size`.
struct Window {
  enum class Kind : uint8_t { None, Sliding, Chunked };
  Kind kind = Kind::None;
  uint32_t size = 0;
  bool operator==(const Window&) const = default;
};

// The hidden value of an expert from its gate g and up u.
//   SwiGlu: silu(g) * u.  GeGlu: gelu_tanh(g) * u.
//   ClampedSwiGlu: g' = min(g, limit), u' = clamp(u, -limit, limit), g' * sigmoid(slope * g') * (u' + 1).
struct MoeAct {
  enum class Kind : uint8_t { SwiGlu, GeGlu, ClampedSwiGlu };
  Kind kind = Kind::SwiGlu;
  float limit = 0;
  float slope = 0;
  bool operator==(const MoeAct&) const = default;
};

// ---- products ----

// out[r][o] = sum over t of x[r][t] * w[t][o].  x: m x k, w: k x n, out: m x n. All f32, or all integers with exact
// sums.
struct Matmul {
  static constexpr std::string_view kName = "matmul";
  static constexpr std::array kOperands{OperandDecl{"x"}, OperandDecl{"w"}};
  static constexpr auto fields() { return std::tuple{}; }
  bool operator==(const Matmul&) const = default;
};

// Per head h: out[r][h][o] = sum over e < a of x[r][h][e] * W_h[e][o], o < b.  out: m x heads*b.
// w is (heads*b) x a with rows_out (its rows are the heads' outputs), else (heads*a) x b.
// x is m x heads*a, or m x a with shared (every head reads the row's single unit).
struct HeadMatmul {
  static constexpr std::string_view kName = "head_matmul";
  static constexpr std::array kOperands{OperandDecl{"x"}, OperandDecl{"w"}};
  uint32_t heads = 1;
  bool rows_out = true;
  bool shared = false;
  static constexpr auto fields();
  bool operator==(const HeadMatmul&) const = default;
};

// ---- elementwise ----

// out = a (op) b, equal shapes. Of integers, div rounds down and a result that does not fit an i32 is refused.
struct Elementwise {
  static constexpr std::string_view kName = "elementwise";
  static constexpr std::array kOperands{OperandDecl{"a"}, OperandDecl{"b"}};
  Arithmetic op = Arithmetic::Add;
  static constexpr auto fields();
  bool operator==(const Elementwise&) const = default;
};

// out[r][c] = a[r][c] (op) b[c], b one row of a's width; or with scalar b[r], b m x 1: one value a row. Integers as
// above.
struct RowBroadcast {
  static constexpr std::string_view kName = "row_broadcast";
  static constexpr std::array kOperands{OperandDecl{"a"}, OperandDecl{"b"}};
  Arithmetic op = Arithmetic::Add;
  bool scalar = false;
  static constexpr auto fields();
  bool operator==(const RowBroadcast&) const = default;
};

// out = x * factor.
struct Scale {
  static constexpr std::string_view kName = "scale";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  float factor = 1;
  static constexpr auto fields();
  bool operator==(const Scale&) const = default;
};

// out = f(x); gelu is the tanh form. Integers: relu alone.
struct Activate {
  static constexpr std::string_view kName = "activate";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  ActivationKind kind = ActivationKind::Silu;
  static constexpr auto fields();
  bool operator==(const Activate&) const = default;
};

// out = cap * tanh(x / cap).  Requires cap > 0.
struct Softcap {
  static constexpr std::string_view kName = "softcap";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  float cap = 1;
  static constexpr auto fields();
  bool operator==(const Softcap&) const = default;
};

// Integers: out = (x * multiplier) >> shift, exact product, arithmetic shift.  Requires 0 <= shift < 63.
struct IntRequant {
  static constexpr std::string_view kName = "int_requant";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  int32_t multiplier = 1;
  uint32_t shift = 0;
  static constexpr auto fields();
  bool operator==(const IntRequant&) const = default;
};

// Integers: out = min(max(x, low), high).
struct IntClamp {
  static constexpr std::string_view kName = "int_clamp";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  int32_t low = -128;
  int32_t high = 127;
  static constexpr auto fields();
  bool operator==(const IntClamp&) const = default;
};

// ---- moves ----

// out[c][r] = x[r][c].
struct Transpose {
  static constexpr std::string_view kName = "transpose";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  static constexpr auto fields() { return std::tuple{}; }
  bool operator==(const Transpose&) const = default;
};

// Of every `every` values of a row the `width` from `from` on.  x: m x g*every, out: m x g*width.
struct HeadSlice {
  static constexpr std::string_view kName = "head_slice";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  uint32_t every = 1;
  uint32_t from = 0;
  uint32_t width = 1;
  static constexpr auto fields();
  bool operator==(const HeadSlice&) const = default;
};

// Per head: a's unit, then b's.  a: m x heads*ha, b: m x heads*hb, out: m x heads*(ha+hb).
struct Join {
  static constexpr std::string_view kName = "join";
  static constexpr std::array kOperands{OperandDecl{"a"}, OperandDecl{"b"}};
  uint32_t heads = 1;
  static constexpr auto fields();
  bool operator==(const Join&) const = default;
};

// out = row i of table (1 x cols): i is the literal `row`, or the single item of `index` when that operand is present.
struct RowGather {
  static constexpr std::string_view kName = "row_gather";
  static constexpr std::array kOperands{OperandDecl{"table"}, OperandDecl{"index", Access::Read, true}};
  uint32_t row = 0;
  static constexpr auto fields();
  bool operator==(const RowGather&) const = default;
};

// out[r] = row index[r] of table.  index: m x 1 (i32), out: m x cols.
struct RowsGather {
  static constexpr std::string_view kName = "rows_gather";
  static constexpr std::array kOperands{OperandDecl{"table"}, OperandDecl{"index"}};
  static constexpr auto fields() { return std::tuple{}; }
  bool operator==(const RowsGather&) const = default;
};

// Rows i, i+1, ... of table become the rows of src, in place; the result is the table.
// i is the literal `row`, or the single item of `index`.
struct SetRows {
  static constexpr std::string_view kName = "set_rows";
  static constexpr std::array kOperands{OperandDecl{"table", Access::Update}, OperandDecl{"src"},
                                        OperandDecl{"index", Access::Read, true}};
  uint32_t row = 0;
  static constexpr auto fields();
  bool operator==(const SetRows&) const = default;
};

// out[r] = 1 + index of the first maximum of x[r] by a strict "greater" scan from item 1.  out: m x 1 (i32).
struct ArgMax {
  static constexpr std::string_view kName = "argmax";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  static constexpr auto fields() { return std::tuple{}; }
  bool operator==(const ArgMax&) const = default;
};

// ---- rows ----

// Over every unit u of `width` values of a row (0: the whole row), v = u (+ the same unit of residual):
//   Rms:   v / sqrt(mean(v^2) + eps) * weight + bias
//   Layer: (v - mean(v)) / sqrt(mean((v - mean(v))^2) + eps) * weight + bias
// weight, bias: 1 x width.
struct RowNorm {
  static constexpr std::string_view kName = "row_norm";
  static constexpr std::array kOperands{OperandDecl{"x"}, OperandDecl{"weight", Access::Read, true},
                                        OperandDecl{"residual", Access::Read, true},
                                        OperandDecl{"bias", Access::Read, true}};
  NormKind kind = NormKind::Rms;
  float eps = 1e-6F;
  uint32_t width = 0;
  static constexpr auto fields();
  bool operator==(const RowNorm&) const = default;
};

// Softmax of every row; sinks (m x 1 or 1 x 1): one more logit a row that takes part in the sum and gives no value.
struct Softmax {
  static constexpr std::string_view kName = "softmax";
  static constexpr std::array kOperands{OperandDecl{"x"}, OperandDecl{"sinks", Access::Read, true}};
  static constexpr auto fields() { return std::tuple{}; }
  bool operator==(const Softmax&) const = default;
};

// Over every unit of `width` values (0: the whole row): u / sqrt(sum(u^2) + eps).
struct L2Norm {
  static constexpr std::string_view kName = "l2_norm";
  static constexpr std::array kOperands{OperandDecl{"x"}};
  float eps = 1e-6F;
  uint32_t width = 0;
  static constexpr auto fields();
  bool operator==(const L2Norm&) const = default;
};

// Rotary embedding of every unit of `width` values, split-half pairs (i, i + half); values from 2*half on pass through.
//   out[i] = x[i] cos[i] - x[i+half] sin[i],  out[i+half] = x[i] sin[i] + x[i+half] cos[i],  i < half.
// cos, sin: tables of rows of `half` values. Row r of x uses table row P + r: P the item of `position`, or 1.
struct Rope {
  static constexpr std::string_view kName = "rope";
  static constexpr std::array kOperands{OperandDecl{"x"}, OperandDecl{"cos"}, OperandDecl{"sin"},
                                        OperandDecl{"position", Access::Read, true}};
  uint32_t width = 0;
  uint32_t half = 0;
  static constexpr auto fields();
  bool operator==(const Rope&) const = default;
};

// ---- attention ----

// Row r attends n = P + r positions, r from 0 (P the item of `position`; absent: every row attends the whole cache), of
// which `window` keeps some: of the 1-based positions 1..n sliding keeps those above n - size, chunked those above
// floor((n - 1) / size) * size. Query head h reads key/value head h / (heads / kv_heads).
//   s_j = scale * (q . k_j); softcap > 0: s_j = softcap * tanh(s_j / softcap)
//   p   = softmax over the kept j, with sinks[h] as one more logit that takes no value
//   out[r][h] = sum over j of p_j * v_j
// q: m x heads*hd, k: len x kv_heads*hd, v: len x kv_heads*vd, sinks: 1 x heads, out: m x heads*vd.
struct Attention {
  static constexpr std::string_view kName = "attention";
  static constexpr std::array kOperands{OperandDecl{"q"}, OperandDecl{"k"}, OperandDecl{"v"},
                                        OperandDecl{"position", Access::Read, true},
                                        OperandDecl{"sinks", Access::Read, true}};
  uint32_t heads = 1;
  uint32_t kv_heads = 1;
  float scale = 1;
  float softcap = 0;
  Window window;
  static constexpr auto fields();
  bool operator==(const Attention&) const = default;
};

// Attention without a mask, heads one to one: every row of q attends every row of k.
struct FullAttention {
  static constexpr std::string_view kName = "full_attention";
  static constexpr std::array kOperands{OperandDecl{"q"}, OperandDecl{"k"}, OperandDecl{"v"}};
  uint32_t heads = 1;
  float scale = 1;
  static constexpr auto fields();
  bool operator==(const FullAttention&) const = default;
};

// Integer attention of one query row by a table of exponentials:
//   s_j = q . k_j, index_j = min(max(((max s - s_j) * multiplier) >> shift, 0), n - 1), w_j = table[1 + index_j],
//   out = floor((sum over j of w_j v_j) / (sum over j of w_j)), j over the P attended positions (without `position`:
//   all).
// q: 1 x heads*hd, k: len x kv_heads*hd, v: len x kv_heads*vd, table: 1 x n, integers.
struct LutAttention {
  static constexpr std::string_view kName = "lut_attention";
  static constexpr std::array kOperands{OperandDecl{"q"}, OperandDecl{"k"}, OperandDecl{"v"}, OperandDecl{"table"},
                                        OperandDecl{"position", Access::Read, true}};
  uint32_t heads = 1;
  uint32_t kv_heads = 1;
  int32_t multiplier = 1;
  uint32_t shift = 0;
  static constexpr auto fields();
  bool operator==(const LutAttention&) const = default;
};

// ---- carried memory ----

// Depthwise causal convolution over a carried ring. E = the ring's rows, then x's:
//   out[r][c] = sum over t of E[r + 1 + t][c] * w[t][c];  ring' = the last `taps` rows of E.
// x: m x chan, w: taps x chan, ring: taps x chan, out: m x chan.
struct CausalConv {
  static constexpr std::string_view kName = "causal_conv";
  static constexpr std::array kOperands{OperandDecl{"x"}, OperandDecl{"w"}, OperandDecl{"ring", Access::Update}};
  static constexpr auto fields() { return std::tuple{}; }
  bool operator==(const CausalConv&) const = default;
};

// out[r][h] = (1 + e^(x[r][h] + bias[h]))^rate[h] = e^(rate * softplus(x + bias)).  x: m x n; bias, rate: 1 x n.
struct Decay {
  static constexpr std::string_view kName = "decay";
  static constexpr std::array kOperands{OperandDecl{"x"}, OperandDecl{"bias"}, OperandDecl{"rate"}};
  static constexpr auto fields() { return std::tuple{}; }
  bool operator==(const Decay&) const = default;
};

// The gated delta rule, row after row. Per value head h with key head g: k = k_g, q = q_g, memory S (d x d, row-major),
//   S' = alpha S;  u = S' k;  S = S' + beta (v - u) k^T;  o = S q / sqrt(d)
//   out = o / sqrt(mean(o^2) + eps) * norm * gate(z)
// alpha holds one value a value head, or one per channel (value_heads*d): then column j of S decays by alpha[j].
// q, k: m x key_heads*d; v, z, out: m x value_heads*d; beta: m x value_heads; state: value_heads*d x d; norm: 1 x d.
struct GatedDelta {
  static constexpr std::string_view kName = "gated_delta";
  static constexpr std::array kOperands{OperandDecl{"q"},
                                        OperandDecl{"k"},
                                        OperandDecl{"v"},
                                        OperandDecl{"z"},
                                        OperandDecl{"beta"},
                                        OperandDecl{"alpha"},
                                        OperandDecl{"state", Access::Update},
                                        OperandDecl{"norm"}};
  uint32_t value_heads = 1;
  uint32_t key_heads = 1;
  float eps = 1e-6F;
  KeyHeadOf key_head_of = KeyHeadOf::Modulo;
  GateKind gate = GateKind::Silu;
  static constexpr auto fields();
  bool operator==(const GatedDelta&) const = default;
};

// ---- mixture of experts ----

// Per row x of d values:
//   L = x router (+ router_bias); P = score(L); the choice is made by sel = P (+ select_bias), an undefined one the
//   least groups > 1: the experts are cut into `groups` equal groups, a group's worth is the sum of its two best sel
//   (its
//     best, when it holds one expert), and only the `groups_kept` best groups stay in the choice
//   e_1..e_used = the largest sel, the lower index first when equal;  w_i = P[e_i] (* scale without renormalize)
//   x' = w_i x with weigh_inputs, else x
//   h_i = act(gate[e_i] x' + gate_bias, up[e_i] x' + up_bias),  y_i = (down[e_i] h_i + down_bias) (* expert_scale)
//   out = sum of y_i with weigh_inputs, else sum of w_i y_i; with renormalize / max(sum of w_i, 2^-14) * scale
// x: m x d; router: d x experts; gate, up: experts*hidden x d (row e*hidden + o); down: experts*d x hidden;
// router_bias, select_bias, expert_scale: 1 x experts; gate_bias, up_bias: experts x hidden; down_bias: experts x d.
// Requires not both weigh_inputs and renormalize.
struct Moe {
  static constexpr std::string_view kName = "moe";
  static constexpr std::array kOperands{OperandDecl{"x"},
                                        OperandDecl{"router"},
                                        OperandDecl{"gate"},
                                        OperandDecl{"up"},
                                        OperandDecl{"down"},
                                        OperandDecl{"router_bias", Access::Read, true},
                                        OperandDecl{"gate_bias", Access::Read, true},
                                        OperandDecl{"up_bias", Access::Read, true},
                                        OperandDecl{"down_bias", Access::Read, true},
                                        OperandDecl{"select_bias", Access::Read, true},
                                        OperandDecl{"expert_scale", Access::Read, true}};
  uint32_t experts = 1;
  uint32_t used = 1;
  uint32_t hidden = 1;
  ScoreKind score = ScoreKind::Softmax;
  MoeAct act;
  bool renormalize = false;
  bool weigh_inputs = false;
  float scale = 1;
  uint32_t groups = 1;
  uint32_t groups_kept = 1;
  static constexpr auto fields();
  bool operator==(const Moe&) const = default;
};

using OpSpec =
    std::variant<Matmul, HeadMatmul, Elementwise, RowBroadcast, Scale, Activate, Softcap, IntRequant, IntClamp,
                 Transpose, HeadSlice, Join, RowGather, RowsGather, SetRows, ArgMax, RowNorm, Softmax, L2Norm, Rope,
                 Attention, FullAttention, LutAttention, CausalConv, Decay, GatedDelta, Moe>;

// ---- fields, for the text form ----

constexpr auto HeadMatmul::fields() {
  return std::tuple{field("heads", &HeadMatmul::heads), field("rows_out", &HeadMatmul::rows_out),
                    field("shared", &HeadMatmul::shared)};
}
constexpr auto Elementwise::fields() { return std::tuple{field("op", &Elementwise::op)}; }
constexpr auto RowBroadcast::fields() {
  return std::tuple{field("op", &RowBroadcast::op), field("scalar", &RowBroadcast::scalar)};
}
constexpr auto Scale::fields() { return std::tuple{field("factor", &Scale::factor)}; }
constexpr auto Activate::fields() { return std::tuple{field("kind", &Activate::kind)}; }
constexpr auto Softcap::fields() { return std::tuple{field("cap", &Softcap::cap)}; }
constexpr auto IntRequant::fields() {
  return std::tuple{field("multiplier", &IntRequant::multiplier), field("shift", &IntRequant::shift)};
}
constexpr auto IntClamp::fields() { return std::tuple{field("low", &IntClamp::low), field("high", &IntClamp::high)}; }
constexpr auto HeadSlice::fields() {
  return std::tuple{field("every", &HeadSlice::every), field("from", &HeadSlice::from),
                    field("width", &HeadSlice::width)};
}
constexpr auto Join::fields() { return std::tuple{field("heads", &Join::heads)}; }
constexpr auto RowGather::fields() { return std::tuple{field("row", &RowGather::row)}; }
constexpr auto SetRows::fields() { return std::tuple{field("row", &SetRows::row)}; }
constexpr auto RowNorm::fields() {
  return std::tuple{field("kind", &RowNorm::kind), field("eps", &RowNorm::eps), field("width", &RowNorm::width)};
}
constexpr auto L2Norm::fields() { return std::tuple{field("eps", &L2Norm::eps), field("width", &L2Norm::width)}; }
constexpr auto Rope::fields() { return std::tuple{field("width", &Rope::width), field("half", &Rope::half)}; }
constexpr auto Attention::fields() {
  return std::tuple{field("heads", &Attention::heads), field("kv_heads", &Attention::kv_heads),
                    field("scale", &Attention::scale), field("softcap", &Attention::softcap),
                    field("window", &Attention::window)};
}
constexpr auto FullAttention::fields() {
  return std::tuple{field("heads", &FullAttention::heads), field("scale", &FullAttention::scale)};
}
constexpr auto LutAttention::fields() {
  return std::tuple{field("heads", &LutAttention::heads), field("kv_heads", &LutAttention::kv_heads),
                    field("multiplier", &LutAttention::multiplier), field("shift", &LutAttention::shift)};
}
constexpr auto GatedDelta::fields() {
  return std::tuple{field("value_heads", &GatedDelta::value_heads), field("key_heads", &GatedDelta::key_heads),
                    field("eps", &GatedDelta::eps), field("key_head_of", &GatedDelta::key_head_of),
                    field("gate", &GatedDelta::gate)};
}
constexpr auto Moe::fields() {
  return std::tuple{field("experts", &Moe::experts),
                    field("used", &Moe::used),
                    field("hidden", &Moe::hidden),
                    field("score", &Moe::score),
                    field("act", &Moe::act),
                    field("renormalize", &Moe::renormalize),
                    field("weigh_inputs", &Moe::weigh_inputs),
                    field("scale", &Moe::scale),
                    field("groups", &Moe::groups),
                    field("groups_kept", &Moe::groups_kept)};
}

// Calls visit(field) for every field of `Op`, in order.
template <class Op, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Op::fields());
}

}  // namespace tw::graph
