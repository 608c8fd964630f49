#include "spatial/lower/testing/random_op.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "spatial/testing.h"

namespace tw::spatial::lower::testing {
namespace {

class Draw {
 public:
  Draw(const Target& target, uint64_t seed) : target_(target), random_(seed * 0x9E3779B97F4A7C15U + 11) {}

  uint64_t below(uint64_t n) { return random_() % n; }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low + 1)));
  }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <class T>
  T choose(std::initializer_list<T> of) {
    return of.begin()[below(of.size())];
  }

  // Elements that a draw may have, so that it runs in milliseconds.
  [[nodiscard]] uint64_t budget() const { return target_.tile.rows * target_.tile.cols >= 256 ? 2500 : 500; }
  uint64_t width(uint64_t most) { return ugly(most, target_.tile.cols); }
  uint64_t rows(uint64_t most) { return one_in(3) ? 1 : ugly(most, target_.tile.rows); }
  uint64_t small(uint64_t most) { return 1 + below(std::max<uint64_t>(1, most)); }
  // Of whole tiles as often as not.
  uint64_t unit(uint64_t most) {
    const uint64_t tw = target_.tile.cols;
    return most >= tw && one_in(2) ? tw * small(std::min<uint64_t>(most / tw, 3)) : width(most);
  }

  CaseOperand real(std::string name, uint64_t rows, uint64_t cols, double low = -2, double high = 2) {
    CaseOperand made = reals(std::move(name), rows, cols, random_(), low, high);
    if (one_in(3))  // ties and zeros
      for (double& value : made.values) value = std::floor(value * 2) / 2;
    if (one_in(6))
      for (double& value : made.values) value = one_in(3) ? -0.0 : value;
    made.tensor.constant = one_in(4);
    if (one_in(6)) made.tensor.dtype = precision(is_real);
    return made;
  }
  CaseOperand integer(std::string name, uint64_t rows, uint64_t cols, int64_t low, int64_t high) {
    CaseOperand made = integers(std::move(name), rows, cols, random_(), low, high + 1);
    made.tensor.constant = one_in(4);
    if (one_in(4)) made.tensor.dtype = holding(magnitude_of(made.tensor.fill));
    return made;
  }
  // A row or position of `count`, now and then outside.
  int64_t row_of(uint64_t count) {
    const auto n = static_cast<int64_t>(count);
    return one_in(6) ? choose<int64_t>({0, -1, n + 1, n + 2}) : choose<int64_t>({1, n, between(1, n)});
  }
  CaseOperand index_of(std::string name, uint64_t count) {
    CaseOperand made = index(std::move(name), row_of(count), choose<uint64_t>({0, count, count + 2, 300}));
    if (one_in(4)) made.tensor.fill = IntegerInit{static_cast<int64_t>(made.values[0])};
    made.tensor.constant = std::holds_alternative<IntegerInit>(made.tensor.fill) || one_in(4);
    if (one_in(3)) made.tensor.dtype = holding(magnitude_of(made.tensor.fill));
    return made;
  }
  // Undefined and infinite values, for ops that only move.
  void sprinkle(CaseOperand& operand) {
    const std::optional<Precision> element = target_.real_element;
    if (operand.tensor.integer || !element || traits(*element).kind == NumberKind::Fixed || !one_in(3)) return;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (double& value : operand.values)
      if (one_in(7)) value = choose({kInfinity, -kInfinity, std::nan(""), -0.0});
  }

  std::optional<Precision> precision(bool (*kind)(Precision)) {
    return pick([&](Precision p) { return kind(p); });
  }
  std::optional<Precision> holding(uint64_t magnitude) {
    return pick([&](Precision p) { return is_integer(p) && static_cast<uint64_t>(int_max(p)) >= magnitude; });
  }
  [[nodiscard]] const Target& target() const { return target_; }

 private:
  uint64_t ugly(uint64_t most, uint64_t tile) {
    const uint64_t page = tile * target_.accumulator_tiles;
    std::vector<uint64_t> of = {
        1,    2,        3,        5,           7,        13,           37,       tile - 1, tile, tile + 1,
        page, page - 1, page + 1, page + tile, 2 * tile, 2 * tile + 1, 3 * tile, 101,      257,  1 + below(most)};
    std::erase_if(of, [&](uint64_t n) { return n < 1 || n > most; });
    return of[below(of.size())];
  }
  template <class Admits>
  std::optional<Precision> pick(const Admits& admits) {
    std::vector<Precision> of;
    for (const Precision p : target_.precisions)
      if (admits(p)) of.push_back(p);
    return of.empty() ? std::nullopt : std::optional(of[below(of.size())]);
  }

  const Target& target_;
  std::mt19937_64 random_;
};

// An operand a second time, when the shapes allow it.
bool same(Draw& draw, const CaseOperand& a, CaseOperand& b) {
  if (a.tensor.rows != b.tensor.rows || a.tensor.cols != b.tensor.cols || a.tensor.integer != b.tensor.integer)
    return false;
  if (!draw.one_in(4)) return false;
  b = a;
  return true;
}

// ---- maps of one element ----

CaseOperand tensor(Draw& draw, std::string name, bool integer, double low = -2, double high = 2) {
  const uint64_t rows = draw.rows(draw.budget() / 8), cols = draw.width(draw.budget() / rows);
  return integer ? draw.integer(std::move(name), rows, cols, -100, 100)
                 : draw.real(std::move(name), rows, cols, low, high);
}

RandomOp scale(Draw& draw) {
  return {{graph::Scale{draw.choose({1.0F, -0.5F, 0.0F, 3.25F, 0.1F})}, {tensor(draw, "x", false)}}, {}};
}

RandomOp activate(Draw& draw) {
  using enum graph::ActivationKind;
  const auto kind = draw.choose({Silu, Sigmoid, GeluTanh, Relu, Softplus, Tanh, Exp});
  // Far below 0 a softplus is lost in f32, all of it.
  const double reach = kind != Exp && kind != Softplus && draw.one_in(4) ? 100 : 3;
  CaseOperand x = tensor(draw, "x", kind == Relu && draw.one_in(2), -reach, reach);
  x.values[0] = reach;  // a scale for what is far below 0
  return {{graph::Activate{kind}, {x}}, {}, 8};
}

RandomOp softcap(Draw& draw) {
  const double reach = draw.choose({2.0, 100.0});
  return {{graph::Softcap{draw.choose({1.0F, 30.0F, 0.5F})}, {tensor(draw, "x", false, -reach, reach)}}, {}, 8};
}

RandomOp int_requant(Draw& draw) {
  const auto multiplier = draw.choose<int32_t>({1, -1, 0, 3, -77, 1 << 20, std::numeric_limits<int32_t>::min()});
  return {{graph::IntRequant{multiplier, draw.choose<uint32_t>({0, 1, 7, 20, 31, 40, 62})}, {tensor(draw, "x", true)}},
          {}};
}

RandomOp int_clamp(Draw& draw) {
  int32_t low = draw.choose<int32_t>({-128, 0, -7, std::numeric_limits<int32_t>::min(), 50});
  int32_t high = draw.choose<int32_t>({127, 0, 5, std::numeric_limits<int32_t>::max(), 50});
  if (low > high) std::swap(low, high);
  return {{graph::IntClamp{low, high}, {tensor(draw, "x", true)}}, {}};
}

// ---- arithmetic ----

graph::Arithmetic arithmetic(Draw& draw) {
  using enum graph::Arithmetic;
  return draw.choose({Add, Sub, Mul, Div, Min, Max});
}

CaseOperand right_side(Draw& draw, graph::Arithmetic op, bool integer, uint64_t rows, uint64_t cols) {
  CaseOperand made = integer ? draw.integer("b", rows, cols, -40, 40) : draw.real("b", rows, cols);
  const bool zeros = draw.one_in(4);
  if (op == graph::Arithmetic::Div && !zeros)
    for (double& value : made.values) value = std::fabs(value) < 0.5 ? 1 : value;
  return made;
}

RandomOp elementwise(Draw& draw) {
  const graph::Arithmetic op = arithmetic(draw);
  CaseOperand a = tensor(draw, "a", draw.one_in(2));
  CaseOperand b = right_side(draw, op, a.tensor.integer, a.tensor.rows, a.tensor.cols);
  same(draw, a, b);
  return {{graph::Elementwise{op}, {a, b}}, {}};
}

RandomOp row_broadcast(Draw& draw) {
  const graph::Arithmetic op = arithmetic(draw);
  const bool scalar = draw.one_in(2);
  CaseOperand a = tensor(draw, "a", draw.one_in(2));
  CaseOperand b = right_side(draw, op, a.tensor.integer, scalar ? a.tensor.rows : 1, scalar ? 1 : a.tensor.cols);
  same(draw, a, b);
  return {{graph::RowBroadcast{op, scalar}, {a, b}}, {}};
}

// ---- moves ----

RandomOp transpose(Draw& draw) {
  CaseOperand x = tensor(draw, "x", draw.one_in(2));
  draw.sprinkle(x);
  return {{graph::Transpose{}, {x}}, {}};
}

RandomOp head_slice(Draw& draw) {
  const uint64_t rows = draw.rows(6), every = draw.unit(draw.budget() / rows / 2);
  const uint64_t groups = draw.small(std::min<uint64_t>(8, draw.budget() / rows / every));
  uint64_t from = draw.below(every), width = draw.small(every - from);
  const uint64_t tw = draw.target().tile.cols;
  if (every % tw == 0 && draw.one_in(2)) {
    from = draw.below(every / tw) * tw;
    width = draw.small((every - from) / tw) * tw;
  }
  CaseOperand x =
      draw.one_in(2) ? draw.integer("x", rows, groups * every, -100, 100) : draw.real("x", rows, groups * every);
  draw.sprinkle(x);
  return {
      {graph::HeadSlice{static_cast<uint32_t>(every), static_cast<uint32_t>(from), static_cast<uint32_t>(width)}, {x}},
      {}};
}

RandomOp join(Draw& draw) {
  const uint64_t rows = draw.rows(6), heads = draw.small(5);
  const uint64_t most = std::max<uint64_t>(1, draw.budget() / rows / heads / 2);
  const uint64_t ha = draw.unit(most), hb = draw.unit(most);
  const bool integer = draw.one_in(2);
  const auto of = [&](std::string name, uint64_t width) {
    CaseOperand made = integer ? draw.integer(std::move(name), rows, heads * width, -100, 100)
                               : draw.real(std::move(name), rows, heads * width);
    draw.sprinkle(made);
    return made;
  };
  CaseOperand a = of("a", ha), b = of("b", hb);
  same(draw, a, b);
  return {{graph::Join{static_cast<uint32_t>(heads)}, {a, b}}, {}};
}

// ---- rows in memory ----

CaseOperand table_of(Draw& draw, uint64_t rows, uint64_t cols) {
  CaseOperand table = draw.one_in(2) ? draw.integer("table", rows, cols, -100, 100) : draw.real("table", rows, cols);
  draw.sprinkle(table);
  table.tensor.dense = draw.one_in(3);
  return table;
}

RandomOp row_gather(Draw& draw) {
  const uint64_t cols = draw.unit(draw.budget() / 3), rows = draw.rows(draw.budget() / cols);
  OpCase c{graph::RowGather{}, {table_of(draw, rows, cols), std::nullopt}};
  if (draw.one_in(3)) {
    std::get<graph::RowGather>(c.spec).row = static_cast<uint32_t>(std::max<int64_t>(0, draw.row_of(rows)));
  } else {
    c.operands[1] = draw.index_of("i", rows);
  }
  return {c, {}};
}

RandomOp rows_gather(Draw& draw) {
  const uint64_t cols = draw.unit(draw.budget() / 4), rows = draw.rows(draw.budget() / cols);
  const uint64_t count = draw.rows(std::max<uint64_t>(1, draw.budget() / cols));
  CaseOperand at = integers("i", count, 1, draw.below(1000), 1, static_cast<int64_t>(rows) + 1);
  if (draw.one_in(8)) at.values[draw.below(count)] = static_cast<double>(draw.choose<uint64_t>({0, rows + 1}));
  at.tensor.fill = GivenFill{draw.choose<uint64_t>({rows + 1, 300})};
  if (draw.one_in(3)) at.tensor.dtype = draw.holding(magnitude_of(at.tensor.fill));
  CaseOperand table = table_of(draw, rows, cols);
  if (rows == count && cols == 1 && draw.one_in(3)) table = at;
  return {{graph::RowsGather{}, {table, at}}, {}};
}

RandomOp set_rows(Draw& draw) {
  const uint64_t cols = draw.unit(draw.budget() / 3), rows = draw.rows(draw.budget() / cols);
  CaseOperand table = table_of(draw, rows, cols);
  table.tensor.constant = false;
  const uint64_t count = draw.one_in(2) ? 1 : draw.rows(rows);
  CaseOperand src = table.tensor.integer ? draw.integer("src", count, cols, -100, 100) : draw.real("src", count, cols);
  if (!draw.one_in(4)) src.tensor.dtype = table.tensor.dtype;
  draw.sprinkle(src);
  OpCase c{graph::SetRows{}, {table, src, std::nullopt}};
  const uint64_t last = rows - count + 1;
  if (draw.one_in(3)) {
    std::get<graph::SetRows>(c.spec).row = static_cast<uint32_t>(std::max<int64_t>(0, draw.row_of(last)));
  } else {
    c.operands[2] = draw.index_of("i", last);
  }
  return {c, {}};
}

RandomOp argmax(Draw& draw) {
  const bool integer = draw.one_in(3);
  CaseOperand x = tensor(draw, "x", integer);
  draw.sprinkle(x);
  return {{graph::ArgMax{}, {x}}, {}};
}

// ---- products ----

RandomOp matmul(Draw& draw) {
  const uint64_t k = draw.width(draw.target().tile.cols * 5), n = draw.width(draw.budget() / k);
  const uint64_t m = draw.rows(std::max<uint64_t>(1, draw.budget() * 8 / k / n));
  const bool integer = draw.one_in(3);
  const auto of = [&](std::string name, uint64_t rows, uint64_t cols) {
    return integer ? draw.integer(std::move(name), rows, cols, -9, 9) : draw.real(std::move(name), rows, cols, -1, 1);
  };
  CaseOperand x = of("x", m, k), w = of("w", k, n);
  same(draw, x, w);
  return {{graph::Matmul{}, {x, w}}, {}};
}

RandomOp head_matmul(Draw& draw) {
  graph::HeadMatmul op{.rows_out = draw.one_in(2), .shared = draw.one_in(2)};
  const uint64_t heads = draw.small(5), most = std::max<uint64_t>(1, draw.budget() / heads);
  const uint64_t a = draw.unit(std::min<uint64_t>(most, 3 * draw.target().tile.cols)), b = draw.unit(most / a + 1);
  const uint64_t m = draw.rows(std::max<uint64_t>(1, most / a / b));
  op.heads = static_cast<uint32_t>(heads);
  CaseOperand x = draw.real("x", m, op.shared ? a : heads * a, -1, 1);
  CaseOperand w = draw.real("w", heads * (op.rows_out ? b : a), op.rows_out ? a : b, -1, 1);
  same(draw, x, w);
  return {{op, {x, w}}, {}};
}

// ---- rows ----

struct Units {
  uint64_t rows;
  uint64_t width;
  uint64_t count;  // of a row
};
Units units(Draw& draw) {
  const uint64_t width = draw.unit(draw.budget() / 2), rows = draw.rows(draw.budget() / width);
  return {rows, width, draw.small(std::min<uint64_t>(9, draw.budget() / width / rows))};
}

RandomOp row_norm(Draw& draw) {
  const Units u = units(draw);
  graph::RowNorm op{.eps = draw.choose({1e-6F, 1e-5F, 1e-3F}), .width = static_cast<uint32_t>(u.width)};
  if (draw.one_in(3)) op.kind = graph::NormKind::Layer;
  if (u.count == 1 && draw.one_in(2)) op.width = 0;
  CaseOperand x = draw.real("x", u.rows, u.width * u.count), residual = draw.real("r", u.rows, u.width * u.count);
  CaseOperand weight = draw.real("w", 1, u.width), bias = draw.real("bias", 1, u.width);
  same(draw, x, residual);
  same(draw, weight, bias);
  same(draw, x, weight);
  OpCase c{op, {x, std::nullopt, std::nullopt, std::nullopt}};
  if (!draw.one_in(3)) c.operands[1] = weight;
  if (draw.one_in(3)) c.operands[2] = residual;
  if (draw.one_in(3)) c.operands[3] = bias;
  return {c, {}, 16};
}

RandomOp l2_norm(Draw& draw) {
  const Units u = units(draw);
  const uint32_t width = u.count == 1 && draw.one_in(2) ? 0 : static_cast<uint32_t>(u.width);
  return {{graph::L2Norm{draw.choose({1e-6F, 1e-3F}), width}, {draw.real("x", u.rows, u.width * u.count)}}, {}, 8};
}

RandomOp softmax(Draw& draw) {
  CaseOperand x = tensor(draw, "x", false, -6, 6);
  OpCase c{graph::Softmax{}, {x, std::nullopt}};
  if (draw.one_in(2)) {
    CaseOperand sinks = draw.real("sinks", draw.one_in(2) ? 1 : x.tensor.rows, 1);
    same(draw, x, sinks);
    c.operands[1] = sinks;
  }
  return {c, {}, 8};
}

RandomOp rope(Draw& draw) {
  const Units u = units(draw);
  if (u.width < 2) return rope(draw);
  const uint64_t half = draw.one_in(2) ? u.width / 2 : draw.small(u.width / 2);
  const uint64_t table = u.rows + draw.below(6);
  CaseOperand cos = draw.real("cos", table, half, -1, 1), sin = draw.real("sin", table, half, -1, 1);
  same(draw, cos, sin);
  OpCase c{graph::Rope{static_cast<uint32_t>(u.width), static_cast<uint32_t>(half)},
           {draw.real("x", u.rows, u.count * u.width), cos, sin, std::nullopt}};
  if (draw.one_in(2)) c.operands[3] = draw.index_of("p", table - u.rows + 1);
  return {c, {}};
}

// ---- attention ----

struct Heads {
  uint64_t kv;
  uint64_t group;
  uint64_t key;
  uint64_t value;
  uint64_t cached;
};
Heads heads_of(Draw& draw) {
  const uint64_t tw = draw.target().tile.cols;
  Heads h{.kv = draw.small(3), .group = draw.one_in(2) ? 1 : draw.small(5)};
  h.key = draw.unit(2 * tw + 1);
  h.value = draw.one_in(2) ? h.key : draw.unit(2 * tw + 1);
  h.cached = draw.rows(std::max<uint64_t>(1, draw.budget() / h.key));
  return h;
}

RandomOp attention_op(Draw& draw) {
  const Heads h = heads_of(draw);
  const uint64_t heads = h.kv * h.group;
  const bool placed = draw.one_in(2);
  const uint64_t rows = draw.one_in(2) ? 1 : draw.rows(placed ? h.cached : 9);
  graph::Attention op{static_cast<uint32_t>(heads), static_cast<uint32_t>(h.kv), draw.choose({1.0F, 0.3F, -0.5F})};
  if (draw.one_in(4)) op.softcap = draw.choose({1.0F, 20.0F});
  using enum graph::Window::Kind;
  if (draw.one_in(2)) op.window = {draw.choose({Sliding, Chunked}), static_cast<uint32_t>(draw.small(h.cached + 2))};
  CaseOperand k = draw.real("k", h.cached, h.kv * h.key, -1, 1), v = draw.real("v", h.cached, h.kv * h.value);
  same(draw, k, v);
  OpCase c{op, {draw.real("q", rows, heads * h.key, -1, 1), k, v, std::nullopt, std::nullopt}};
  if (placed) c.operands[3] = draw.index_of("p", h.cached - rows + 1);
  if (draw.one_in(3)) c.operands[4] = draw.real("sinks", 1, heads);
  return {c, {}, 16};
}

RandomOp full_attention_op(Draw& draw) {
  const Heads h = heads_of(draw);
  CaseOperand q = draw.real("q", draw.rows(9), h.kv * h.key, -1, 1), k = draw.real("k", h.cached, h.kv * h.key, -1, 1);
  same(draw, q, k);
  CaseOperand v = draw.real("v", h.cached, h.kv * h.value);
  same(draw, k, v);
  return {{graph::FullAttention{static_cast<uint32_t>(h.kv), 0.4F}, {q, k, v}}, {}, 16};
}

RandomOp lut_attention(Draw& draw) {
  const Heads h = heads_of(draw);
  const uint64_t heads = h.kv * h.group;
  CaseOperand k = draw.integer("k", h.cached, h.kv * h.key, -5, 5);
  CaseOperand v = draw.integer("v", h.cached, h.kv * h.value, -5, 5);
  same(draw, k, v);
  OpCase c{graph::LutAttention{static_cast<uint32_t>(heads), static_cast<uint32_t>(h.kv),
                               draw.choose<int32_t>({1, 3, 0, -1, 40}), draw.choose<uint32_t>({0, 1, 4, 10})},
           {draw.integer("q", 1, heads * h.key, -5, 5), k, v,
            draw.integer("table", 1, draw.width(40), draw.one_in(4) ? 0 : 1, 20), std::nullopt}};
  if (draw.one_in(2)) c.operands[4] = draw.index_of("p", h.cached);
  return {c, {}};
}

// ---- carried memory ----

RandomOp causal_conv(Draw& draw) {
  const uint64_t chan = draw.width(draw.budget() / 6), taps = draw.one_in(4) ? draw.rows(9) : draw.small(4);
  const uint64_t rows = draw.rows(std::max<uint64_t>(1, draw.budget() / chan));
  CaseOperand w = draw.real("w", taps, chan, -1, 1), ring = draw.real("ring", taps, chan);
  ring.tensor.constant = false;
  CaseOperand x = draw.real("x", rows, chan);
  same(draw, x, w);
  return {{graph::CausalConv{}, {x, w, ring}}, {}};
}

RandomOp decay(Draw& draw) {
  const CaseOperand x = tensor(draw, "x", false, -4, 4);
  CaseOperand bias = draw.real("bias", 1, x.tensor.cols), rate = draw.real("rate", 1, x.tensor.cols, -2, 0);
  same(draw, rate, bias);
  return {{graph::Decay{}, {x, bias, rate}}, {}, 16};
}

struct Kind {
  std::string_view name;
  RandomOp (*draw)(Draw& draw);
};
constexpr Kind kKinds[] = {
    {"scale", scale},
    {"activate", activate},
    {"softcap", softcap},
    {"int_requant", int_requant},
    {"int_clamp", int_clamp},
    {"elementwise", elementwise},
    {"row_broadcast", row_broadcast},
    {"transpose", transpose},
    {"head_slice", head_slice},
    {"join", join},
    {"row_gather", row_gather},
    {"rows_gather", rows_gather},
    {"set_rows", set_rows},
    {"argmax", argmax},
    {"matmul", matmul},
    {"head_matmul", head_matmul},
    {"row_norm", row_norm},
    {"l2_norm", l2_norm},
    {"softmax", softmax},
    {"rope", rope},
    {"attention", attention_op},
    {"full_attention", full_attention_op},
    {"lut_attention", lut_attention},
    {"causal_conv", causal_conv},
    {"decay", decay},
};

// Where one operand's precision is given, all are: what a lowering chooses for the others may follow from it.
void state_precisions(OpCase& c, const Target& target) {
  const auto real = [](const std::optional<CaseOperand>& operand) { return operand && !operand->tensor.integer; };
  const bool given = std::any_of(c.operands.begin(), c.operands.end(),
                                 [&](const auto& operand) { return real(operand) && operand->tensor.dtype; });
  for (std::optional<CaseOperand>& operand : c.operands)
    if (given && real(operand) && !operand->tensor.dtype) operand->tensor.dtype = target.real_element;
}

}  // namespace

std::vector<std::string_view> random_op_kinds() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

RandomOp random_op(std::string_view kind, const Target& target, uint64_t seed) {
  Draw draw(target, seed);
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.name == kind; });
  TW_CHECK(found != std::end(kKinds), "no random op is called {}", kind);
  RandomOp made = found->draw(draw);
  state_precisions(made.op, target);
  if (kind != "set_rows" && draw.one_in(6)) {
    const bool integer = view_of(made.op, target).result.integer;
    made.result = draw.precision(integer ? is_integer : is_real);
  }
  return made;
}

std::vector<Target> random_op_targets() {
  Target small = spatial::testing::shipped_target("scalar");
  small.name = "scalar_small";
  small.local_bytes = 2048;
  Target tight = t4_with(1024);
  tight.name = "t4_tight";
  Target tiny = t4_with(160);
  tiny.name = "t4_tiny";
  return {t32(),
          t32f(),
          t4(),
          t4f(),
          t16(),
          t1(),
          tall(),
          spatial::testing::shipped_target("fabric"),
          small,
          tight,
          tiny,
          without_reals(),
          narrow_integers()};
}

}  // namespace tw::spatial::lower::testing
