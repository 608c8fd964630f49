// Attention, carried memory and mixtures against literal transcriptions of their formulas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/expect_values.h"
#include "graph/testing.h"

namespace tw::graph {
namespace {

using testing::expect_values;
using ::testing::HasSubstr;
using testing::NamedValues;
using testing::sigma;
using testing::value_of;

double silu(double x) { return x * sigma(x); }

// ---- attention ----

// Five positions, one head of width 1: keys 0 to 4, values powers of ten.
constexpr std::string_view kCache =
    "const k 5x1 = [0; 1; 2; 3; 4]\nconst v 5x1 = [1; 10; 100; 1000; 10000]\nconst q 2x1 = [1; -0.5]\nparam p 1\n";

// Of the kept 0-based positions first to last - 1, for the query value q.
double attended(double q, int first, int last, double cap = 0, const double* sink = nullptr) {
  double sum = sink ? std::exp(*sink) : 0, value = 0;
  for (int j = first; j < last; ++j) {
    const double s = cap > 0 ? cap * std::tanh(q * j / cap) : q * j;
    sum += std::exp(s);
    value += std::exp(s) * std::pow(10, j);
  }
  return value / sum;
}

Result<std::vector<double>> attend(const std::string& fields, double position, const std::string& sinks = "") {
  const std::string constant = sinks.empty() ? "" : "const s 1x1 = [" + sinks + "]\n";
  return value_of(std::string(kCache) + constant + "y = attention(q=q, k=k, v=v, position=p" +
                      (sinks.empty() ? ")" : ", sinks=s)") + fields,
                  "y", {{"p", {position}}});
}

TEST(Attention, ARowSeesOnePositionMoreThanTheRowBefore) {
  expect_values(attend("", 1), {attended(1, 0, 1), attended(-0.5, 0, 2)});
  expect_values(attend("", 4), {attended(1, 0, 4), attended(-0.5, 0, 5)});
  const Result<std::vector<double>> past = attend("", 5);
  ASSERT_FALSE(past.ok());
  EXPECT_EQ(past.refusal().subject, "p");
  EXPECT_THAT(past.refusal().reason, HasSubstr("item 1 is 5, expected 1 to 4"));
}

TEST(Attention, WithoutAPositionEveryRowSeesAll) {
  expect_values(value_of(std::string(kCache) + "y = attention(q=q, k=k, v=v)\nz = scale(x=y)", "y"),
                {attended(1, 0, 5), attended(-0.5, 0, 5)});
}

TEST(Attention, Windows) {
  expect_values(attend(" window=sliding:2", 3), {attended(1, 1, 3), attended(-0.5, 2, 4)});
  expect_values(attend(" window=sliding:9", 3), {attended(1, 0, 3), attended(-0.5, 0, 4)});
  // Runs of two: 0 1 | 2 3 | 4.
  expect_values(attend(" window=chunked:2", 3), {attended(1, 2, 3), attended(-0.5, 2, 4)});
  expect_values(attend(" window=chunked:2", 4), {attended(1, 2, 4), attended(-0.5, 4, 5)});
}

TEST(Attention, ScaleCapAndSinks) {
  expect_values(attend(" scale=0.25", 3), {attended(0.25, 0, 3), attended(-0.125, 0, 4)});
  expect_values(attend(" softcap=1.5", 3), {attended(1, 0, 3, 1.5), attended(-0.5, 0, 4, 1.5)});
  const double sink = 0.75;
  expect_values(attend("", 3, "0.75"), {attended(1, 0, 3, 0, &sink), attended(-0.5, 0, 4, 0, &sink)});
  expect_values(attend(" window=sliding:1", 3, "0.75"), {attended(1, 2, 3, 0, &sink), attended(-0.5, 3, 4, 0, &sink)});
}

TEST(Attention, QueryHeadsShareKeyHeads) {
  // Four query heads over two key heads whose only position has one value each.
  const std::string text = "const q 1x4 = [1 2 3 4]\nconst k 1x2 = [1 1]\nconst v 1x4 = [1 2 3 4]\n";
  expect_values(value_of(text + "y = attention(q=q, k=k, v=v) heads=4 kv_heads=2", "y"), {1, 2, 1, 2, 3, 4, 3, 4});
}

TEST(Attention, FullAttentionMasksNothing) {
  const std::string text = "const q 2x2 = [1 0; 0 0]\nconst k 2x2 = [0 5; 2 7]\nconst v 2x2 = [1 10; 3 20]\n";
  const double w = 1 / (1 + std::exp(-1.0));  // of the score 0.5 * 2 against 0
  expect_values(value_of(text + "y = full_attention(q=q, k=k, v=v) heads=2 scale=0.5", "y"),
                {1 - w + 3 * w, 15, 2, 15});
}

TEST(Attention, ByTableOfExponentials) {
  const std::string text = R"(const q 1x2 i32 = [2 -3]
const k 3x1 i32 = [4; 1; 3]
const v 3x2 i32 = [10 -10; 20 -21; 31 7]
const e 1x4 i32 = [100 50 20 1]
param p 1
y = lut_attention(q=q, k=k, v=v, table=e, position=p) heads=2 kv_heads=1 multiplier=3 shift=2)";
  // Head 1: scores 8 2 6, steps 0 6 2 * 3 >> 2 = 0 4 1, entries 0 3 1, weights 100 1 50.
  // Head 2: scores -12 -3 -9, steps 9 0 6 -> 6 0 4, entries 3 0 3, weights 1 100 1.
  const auto floored = [](double sum, double total) { return std::floor(sum / total); };
  expect_values(value_of(text, "y", {{"p", {3}}}), {floored(1000 + 20 + 1550, 151), floored(-1000 - 21 + 350, 151),
                                                    floored(10 + 2000 + 31, 102), floored(-10 - 2100 + 7, 102)});
  // Two positions: head 1 has steps 0 4, head 2 steps 6 0.
  expect_values(value_of(text, "y", {{"p", {2}}}),
                {floored(1000 + 20, 101), floored(-1000 - 21, 101), floored(10 + 2000, 101), floored(-10 - 2100, 101)});
  const std::string zero = "const q 1x1 i32 = [1]\nconst e 1x1 i32 = [0]\ny = lut_attention(q=q, k=q, v=q, table=e)";
  ASSERT_FALSE(value_of(zero, "y").ok());
  EXPECT_THAT(value_of(zero, "y").refusal().reason, HasSubstr("sum to 0"));
}

// ---- carried memory ----

TEST(Memory, ConvolutionOverARing) {
  const std::string text = R"(const x 2x2 = [1 10; 2 20]
const w 3x2 = [1 1; 10 0; 100 2]
state ring 3x2
y = causal_conv(x=x, w=w, ring=ring))";
  NamedValues kept{{"ring", {-9, -9, 5, 50, 6, 60}}};  // the oldest row is not looked at
  expect_values(value_of(text, "y", {}, &kept), {5 + 60 + 100, 50 + 20, 6 + 10 + 200, 60 + 40});
  EXPECT_EQ(kept["ring"], (std::vector<double>{6, 60, 1, 10, 2, 20}));
}

TEST(Memory, Decay) {
  expect_values(value_of("const x 2x2 = [0 1; -1 800]\nconst b 1x2 = [0.5 0]\nconst a 1x2 = [-2 -0.25]\ny = decay(x=x, "
                         "bias=b, rate=a)",
                         "y"),
                {std::pow(1 + std::exp(0.5), -2), std::pow(1 + std::exp(1.0), -0.25), std::pow(1 + std::exp(-0.5), -2),
                 std::exp(-200.0)});
}

TEST(Memory, GatedDeltaForgetsWritesAndRecalls) {
  // One row, one head of width 2; the memory is [1 2; 3 4].
  const std::string text = R"(const q 1x2 = [1 2]
const k 1x2 = [0.5 -1]
const v 1x2 = [3 1]
const z 1x2 = [1 -1]
const beta 1x1 = [0.25]
const norm 1x2 = [2 3]
state s 2x2
)";
  const auto expected = [](double a0, double a1, bool silu_gate) {
    double state[2][2] = {{1 * a0, 2 * a1}, {3 * a0, 4 * a1}};
    const double k[2] = {0.5, -1}, v[2] = {3, 1}, q[2] = {1, 2}, z[2] = {1, -1}, norm[2] = {2, 3};
    double o[2];
    for (int i = 0; i < 2; ++i) {
      const double u = state[i][0] * k[0] + state[i][1] * k[1];
      for (int j = 0; j < 2; ++j) state[i][j] += 0.25 * (v[i] - u) * k[j];
      o[i] = (state[i][0] * q[0] + state[i][1] * q[1]) / std::sqrt(2.0);
    }
    const double scale = 1 / std::sqrt((o[0] * o[0] + o[1] * o[1]) / 2 + 0.5);
    std::vector<double> y;
    for (int i = 0; i < 2; ++i) y.push_back(o[i] * scale * norm[i] * (silu_gate ? silu(z[i]) : sigma(z[i])));
    return y;
  };
  NamedValues kept{{"s", {1, 2, 3, 4}}};
  const std::string op = "y = gated_delta(q=q, k=k, v=v, z=z, beta=beta, alpha=alpha, state=s, norm=norm) eps=0.5";
  expect_values(value_of(text + "const alpha 1x1 = [0.5]\n" + op, "y", kept), expected(0.5, 0.5, true));
  expect_values(value_of(text + "const alpha 1x2 = [0.5 0.75]\n" + op + " gate=sigmoid", "y", kept),
                expected(0.5, 0.75, false));
}

TEST(Memory, KeyHeadsOfValueHeads) {
  // Four value heads of width 1 over two key heads, an empty memory and full gates: o = v k q, so its sign is that of
  // k.
  const std::string text = R"(const q 1x2 = [1 1]
const k 1x2 = [1 -1]
const v 1x4 = [1 1 1 1]
const z 1x4 = [1 1 1 1]
const g 1x4 = [1 1 1 1]
const norm 1x1 = [1]
state s 4x1
y = gated_delta(q=q, k=k, v=v, z=z, beta=g, alpha=g, state=s, norm=norm) value_heads=4 key_heads=2 key_head_of=)";
  const auto signs = [](const Result<std::vector<double>>& y) {
    std::vector<int> s;
    for (const double value : *y) s.push_back(value > 0 ? 1 : -1);
    return s;
  };
  EXPECT_EQ(signs(value_of(text + "modulo", "y")), (std::vector<int>{1, -1, 1, -1}));
  EXPECT_EQ(signs(value_of(text + "grouped", "y")), (std::vector<int>{1, 1, -1, -1}));
}

// ---- mixtures ----

// Four experts of one hidden value over x = [1 2]; the router makes the logits of expert e the e-th of `logits`.
struct Mixture {
  std::vector<double> logits{0.5, 2, 1, -1};
  double gate(int e, double x0, double x1) const { return 0.5 * (e + 1) * x0 - 0.25 * x1; }
  double up(int e, double x0, double x1) const { return x0 + 0.5 * e * x1; }
  // Both outputs of expert e for a hidden value.
  std::vector<double> down(int e, double hidden) const { return {hidden * (e + 1), -hidden}; }

  std::string text() const {
    return R"(const x 1x2 = [1 2]
const router 2x4 = [0.5 2 1 -1; 0 0 0 0]
const gate 4x2 = [0.5 -0.25; 1 -0.25; 1.5 -0.25; 2 -0.25]
const up 4x2 = [1 0; 1 0.5; 1 1; 1 1.5]
const down 8x1 = [1; -1; 2; -1; 3; -1; 4; -1]
)";
  }
};

constexpr std::string_view kMoe = "y = moe(x=x, router=router, gate=gate, up=up, down=down";

std::vector<double> softmaxed(const std::vector<double>& logits) {
  double sum = 0;
  std::vector<double> p;
  for (const double l : logits) sum += std::exp(l);
  for (const double l : logits) p.push_back(std::exp(l) / sum);
  return p;
}

// The sum of the chosen experts' outputs by their weights, each over `divisor`.
std::vector<double> mixed(const Mixture& m, const std::vector<int>& chosen, const std::vector<double>& weights,
                          double factor) {
  std::vector<double> y(2);
  for (const int e : chosen) {
    const std::vector<double> out = m.down(e, silu(m.gate(e, 1, 2)) * m.up(e, 1, 2));
    for (int i = 0; i < 2; ++i) y[i] += weights[e] * out[i] * factor;
  }
  return y;
}

TEST(Mixtures, ChooseByScore) {
  const Mixture m;
  const std::vector<double> p = softmaxed(m.logits);
  const std::string fields = ") experts=4 used=2 hidden=1";
  expect_values(value_of(m.text() + std::string(kMoe) + fields, "y"), mixed(m, {1, 2}, p, 1));
  expect_values(value_of(m.text() + std::string(kMoe) + fields + " scale=2.5", "y"), mixed(m, {1, 2}, p, 2.5));
  expect_values(value_of(m.text() + std::string(kMoe) + fields + " renormalize=true scale=2.5", "y"),
                mixed(m, {1, 2}, p, 2.5 / (p[1] + p[2])));
  std::vector<double> s;
  for (const double l : m.logits) s.push_back(sigma(l));
  expect_values(value_of(m.text() + std::string(kMoe) + fields + " score=sigmoid", "y"), mixed(m, {1, 2}, s, 1));
}

TEST(Mixtures, ASmallSumOfWeightsIsDividedByAFloor) {
  const Mixture m;
  const std::string bias = "const rb 1x4 = [-20 -20 -20 -20]\n";
  std::vector<double> s;
  for (const double l : m.logits) s.push_back(sigma(l - 20));
  expect_values(value_of(m.text() + bias + std::string(kMoe) +
                             ", router_bias=rb) experts=4 used=1 hidden=1 score=sigmoid renormalize=true",
                         "y"),
                mixed(m, {1}, s, 16384));
}

TEST(Mixtures, ASelectionBiasChoosesButDoesNotWeigh) {
  const Mixture m;
  const std::string bias = "const sb 1x4 = [0 -9 0 9]\n";
  expect_values(value_of(m.text() + bias + std::string(kMoe) + ", select_bias=sb) experts=4 used=2 hidden=1", "y"),
                mixed(m, {3, 2}, softmaxed(m.logits), 1));
}

TEST(Mixtures, AScaleOfAnExpertIsOfItsOutputNotOfItsWeight) {
  const Mixture m;
  const std::string scale = "const es 1x4 = [9 0.5 9 9]\n";
  std::vector<double> want = m.down(1, silu(m.gate(1, 1, 2)) * m.up(1, 1, 2));
  for (double& value : want) value *= 0.5;
  expect_values(
      value_of(m.text() + scale + std::string(kMoe) + ", expert_scale=es) experts=4 used=1 hidden=1 renormalize=true",
               "y"),
      want);
}

TEST(Mixtures, TheLowerIndexWinsATie) {
  const Mixture m;
  const std::string even = "const rb 1x4 = [-0.5 -2 -1 1]\n";  // every logit is 0
  expect_values(value_of(m.text() + even + std::string(kMoe) + ", router_bias=rb) experts=4 used=2 hidden=1", "y"),
                mixed(m, {0, 1}, {0.25, 0.25, 0.25, 0.25}, 1));
}

TEST(Mixtures, GroupsAreWorthTheirTwoBest) {
  const Mixture m;
  // Scores of the choice about 0.5, 0.2 | 0.45, 0.4: the best expert is in the first group, the best pair in the
  // second.
  const std::vector<double> p = softmaxed(m.logits);
  const std::string bias = "const sb 1x4 = [" + std::to_string(0.5 - p[0]) + " " + std::to_string(0.2 - p[1]) + " " +
                           std::to_string(0.45 - p[2]) + " " + std::to_string(0.4 - p[3]) + "]\n";
  const std::string call = m.text() + bias + std::string(kMoe) + ", select_bias=sb) experts=4 hidden=1 used=1";
  expect_values(value_of(call, "y"), mixed(m, {0}, p, 1));
  expect_values(value_of(call + " groups=2 groups_kept=1", "y"), mixed(m, {2}, p, 1));
  expect_values(value_of(call + " groups=4 groups_kept=2", "y"), mixed(m, {0}, p, 1));
}

TEST(Mixtures, WeighedInputs) {
  const Mixture m;
  const std::vector<double> p = softmaxed(m.logits);
  const double w = p[1] * 1.5;
  expect_values(value_of(m.text() + std::string(kMoe) + ") experts=4 used=1 hidden=1 weigh_inputs=true scale=1.5", "y"),
                m.down(1, silu(m.gate(1, w, 2 * w)) * m.up(1, w, 2 * w)));
}

TEST(Mixtures, ActivationsAndBiases) {
  const Mixture m;
  const double p = softmaxed(m.logits)[1];
  const std::string biases = R"(const gb 4x1 = [9; 2; 9; 9]
const ub 4x1 = [9; -3; 9; 9]
const db 4x2 = [9 9; 0.5 0.25; 9 9; 9 9]
)";
  const std::string call = m.text() + biases + std::string(kMoe) +
                           ", gate_bias=gb, up_bias=ub, down_bias=db) experts=4 used=1 hidden=1 act=";
  const double g = m.gate(1, 1, 2) + 2, u = m.up(1, 1, 2) - 3;
  const auto weighed = [&](double hidden) {
    const std::vector<double> y = m.down(1, hidden);
    return std::vector<double>{p * (y[0] + 0.5), p * (y[1] + 0.25)};
  };
  expect_values(value_of(call + "swiglu", "y"), weighed(silu(g) * u));
  expect_values(value_of(call + "geglu", "y"),
                weighed(0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * u));
  // Both the gate (2.5) and the up (-1) pass a limit of 0.75.
  expect_values(value_of(call + "clamped_swiglu:0.75:1.5", "y"), weighed(0.75 * sigma(1.5 * 0.75) * (-0.75 + 1)));
}

}  // namespace
}  // namespace tw::graph
