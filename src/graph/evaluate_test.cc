#include "graph/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "graph/expect_values.h"
#include "graph/testing.h"
#include "graph/text.h"

namespace tw::graph {
namespace {

using testing::expect_values;
using ::testing::HasSubstr;
using testing::NamedValues;
using testing::sigma;
using testing::value_of;

void expect_refusal(const Result<std::vector<double>>& found, std::string_view subject, std::string_view reason) {
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.refusal().subject, subject);
  EXPECT_THAT(found.refusal().reason, HasSubstr(std::string(reason)));
}

// ---- products ----

TEST(Evaluate, Matmul) {
  expect_values(value_of("const x 2x3 = [1 2 3; 4 5 6]\nconst w 3x2 = [1 0; 0 1; 2 -1]\ny = matmul(x=x, w=w)", "y"),
                {7, -1, 16, -1});
  expect_values(
      value_of("const x 1x2 i32 = [2147483647 -1]\nconst w 2x1 i32 = [1; 2147483647]\ny = matmul(x=x, w=w)", "y"), {0});
  expect_refusal(value_of("const x 1x1 i32 = [65536]\ny = matmul(x=x, w=x)", "y"), "y", "does not fit an i32");
}

TEST(Evaluate, HeadMatmulInBothRowOrders) {
  const std::string x = "const x 1x4 = [1 2 3 4]\n", shared = "const x 1x2 = [1 2]\n";
  // Head 1 has the matrix [1 0; 2 1; 0 3] by output, head 2 [1 1; -1 0; 0 2].
  const std::string by_output = "const w 6x2 = [1 0; 2 1; 0 3; 1 1; -1 0; 0 2]\n";
  const std::string by_input = "const w 4x3 = [1 2 0; 0 1 3; 1 -1 0; 1 0 2]\n";
  expect_values(value_of(x + by_output + "y = head_matmul(x=x, w=w) heads=2", "y"), {1, 4, 6, 7, -3, 8});
  expect_values(value_of(x + by_input + "y = head_matmul(x=x, w=w) heads=2 rows_out=false", "y"), {1, 4, 6, 7, -3, 8});
  expect_values(value_of(shared + by_output + "y = head_matmul(x=x, w=w) heads=2 shared=true", "y"),
                {1, 4, 6, 3, -1, 4});
}

// ---- elementwise ----

TEST(Evaluate, Elementwise) {
  const std::string ab = "const a 1x2 = [3 -8]\nconst b 1x2 = [2 4]\n";
  const std::pair<std::string, std::vector<double>> cases[] = {{"add", {5, -4}},   {"sub", {1, -12}}, {"mul", {6, -32}},
                                                               {"div", {1.5, -2}}, {"min", {2, -8}},  {"max", {3, 4}}};
  for (const auto& [op, expected] : cases)
    expect_values(value_of(ab + "y = elementwise(a=a, b=b) op=" + op, "y"), expected);
}

TEST(Evaluate, IntegersDivideDownwardsAndRefuseWhatDoesNotFit) {
  const std::string a = "const a 1x4 i32 = [7 -7 7 -8]\nconst b 1x4 i32 = [2 2 -2 -2]\n";
  expect_values(value_of(a + "y = elementwise(a=a, b=b) op=div", "y"), {3, -4, -4, 4});
  expect_refusal(value_of("const a 1x1 i32 = [3]\nconst b 1x1 i32 = [0]\ny = elementwise(a=a, b=b) op=div", "y"), "y",
                 "divided by 0");
  expect_refusal(value_of("const a 1x1 i32 = [2147483647]\ny = elementwise(a=a, b=a)", "y"), "y",
                 "does not fit an i32");
}

TEST(Evaluate, RowBroadcast) {
  const std::string a = "const a 2x2 = [1 2; 3 4]\n";
  expect_values(value_of(a + "const b 1x2 = [10 20]\ny = row_broadcast(a=a, b=b)", "y"), {11, 22, 13, 24});
  expect_values(value_of(a + "const b 2x1 = [10; 20]\ny = row_broadcast(a=a, b=b) op=mul scalar=true", "y"),
                {10, 20, 60, 80});
}

TEST(Evaluate, FunctionsOfOneNumber) {
  const std::string x = "const x 1x4 = [-2 0 0.5 40]\n";
  const std::vector<double> in{-2, 0, 0.5, 40};
  const auto map = [&](auto f) {
    std::vector<double> out;
    for (const double v : in) out.push_back(f(v));
    return out;
  };
  const auto kind = [&](const std::string& name) { return value_of(x + "y = activate(x=x) kind=" + name, "y"); };
  expect_values(kind("silu"), map([](double v) { return v / (1 + std::exp(-v)); }));
  expect_values(kind("sigmoid"), map(sigma));
  expect_values(kind("relu"), {0, 0, 0.5, 40});
  expect_values(kind("softplus"), map([](double v) { return std::log(1 + std::exp(v)); }));
  expect_values(kind("tanh"), map([](double v) { return std::tanh(v); }));
  expect_values(kind("exp"), map([](double v) { return std::exp(v); }));
  // x * sigma(2 z), the arrangement with a single exponential.
  expect_values(kind("gelu_tanh"),
                map([](double v) { return v * sigma(2 * 0.7978845608028654 * (v + 0.044715 * v * v * v)); }));
  expect_values(value_of(x + "y = scale(x=x) factor=-0.5", "y"), {1, 0, -0.25, -20});
  expect_values(value_of(x + "y = softcap(x=x) cap=4", "y"), map([](double v) { return 4 * std::tanh(v / 4); }));
}

TEST(Evaluate, IntegerRequantShiftsArithmetically) {
  const std::string x = "const x 1x4 i32 = [100 -100 -1 2147483647]\n";
  expect_values(value_of(x + "y = int_requant(x=x) multiplier=3 shift=4", "y"), {18, -19, -1, 402653183});
  expect_values(value_of(x + "y = int_requant(x=x) multiplier=-2147483648 shift=62", "y"), {-1, 0, 0, -1});
  expect_refusal(value_of(x + "y = int_requant(x=x) multiplier=2", "y"), "y", "item 4 does not fit an i32");
  expect_values(value_of(x + "y = int_clamp(x=x) low=-5 high=7", "y"), {7, -5, -1, 7});
  expect_values(value_of(x + "y = activate(x=x) kind=relu", "y"), {100, 0, 0, 2147483647});
}

// ---- moves ----

TEST(Evaluate, Moves) {
  const std::string x = "const x 2x4 = [1 2 3 4; 5 6 7 8]\n";
  expect_values(value_of(x + "y = transpose(x=x)", "y"), {1, 5, 2, 6, 3, 7, 4, 8});
  expect_values(value_of(x + "y = head_slice(x=x) every=2 from=1 width=1", "y"), {2, 4, 6, 8});
  expect_values(value_of(x + "const b 2x2 = [9 10; 11 12]\ny = join(a=x, b=b) heads=2", "y"),
                {1, 2, 9, 3, 4, 10, 5, 6, 11, 7, 8, 12});
  expect_values(value_of(x + "y = row_gather(table=x) row=2", "y"), {5, 6, 7, 8});
  expect_values(value_of(x + "param i 1\ny = row_gather(table=x, index=i)", "y", {{"i", {1}}}), {1, 2, 3, 4});
  expect_values(value_of(x + "param i 3\ny = rows_gather(table=x, index=i)", "y", {{"i", {2, 1, 2}}}),
                {5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST(Evaluate, SetRowsWritesInPlace) {
  const std::string text =
      "const x 2x2 = [1 2; 3 4]\nstate t 4x2\nparam i 1\nset_rows(table=t, src=x, index=i)\ny = scale(x=t)";
  NamedValues kept;
  expect_values(value_of(text, "y", {{"i", {3}}}, &kept), {0, 0, 0, 0, 1, 2, 3, 4});
  expect_values(value_of(text, "y", {{"i", {2}}}, &kept), {0, 0, 1, 2, 3, 4, 3, 4});
  expect_values(value_of("const x 1x2 = [1 2]\nstate t 2x2\nset_rows(table=t, src=x) row=2\ny = scale(x=t)", "y"),
                {0, 0, 1, 2});
}

TEST(Evaluate, TablesAreEmptyAtEveryStep) {
  const std::string text =
      "const x 1x1 = [1]\ntable t 2x1\nset_rows(table=t, src=x) row=2\ny = row_gather(table=t) row=1";
  const Result<std::vector<double>> y = value_of(text, "y");
  ASSERT_TRUE(y.ok());
  EXPECT_TRUE(std::isnan(y->front()));
}

TEST(Evaluate, ArgMaxKeepsTheFirstAndIgnoresWhatIsNoNumber) {
  expect_values(value_of("const x 4x3 = [1 3 3; nan 9 9; 5 nan 4; -inf -inf -2]\ny = argmax(x=x)", "y"), {2, 1, 1, 3});
}

TEST(Evaluate, AnIndexOutOfRangeIsRefused) {
  const std::string gather = "const x 2x1 = [1; 2]\nparam i 2\ny = rows_gather(table=x, index=i)";
  expect_refusal(value_of(gather, "y", {{"i", {1, 0}}}), "i", "item 2 is 0, expected 1 to 2");
  expect_refusal(value_of(gather, "y", {{"i", {3, 1}}}), "i", "item 1 is 3, expected 1 to 2");
  expect_refusal(value_of(gather, "y", {{"i", {1.5, 1}}}), "i", "item 1 is 1.5, expected an i32");
  expect_refusal(value_of(gather, "y", {{"i", {1}}}), "i", "has 1 values, expected 2");
  expect_refusal(value_of(gather, "y"), "i", "its values are not set");
  const std::string set = "const x 2x1 = [1; 2]\nstate t 4x1\nparam i 1\nset_rows(table=t, src=x, index=i)";
  expect_refusal(value_of(set, "t", {{"i", {4}}}), "i", "item 1 is 4, expected 1 to 3");
}

// ---- rows ----

TEST(Evaluate, RowNorm) {
  const std::string x = "const x 1x4 = [1 3 -2 4]\n";
  const double eps = static_cast<double>(0.5F);
  const double both = std::sqrt(7.5 + eps), first = std::sqrt(5 + eps), second = std::sqrt(10 + eps);
  expect_values(value_of(x + "y = row_norm(x=x) eps=0.5", "y"), {1 / both, 3 / both, -2 / both, 4 / both});
  expect_values(
      value_of(x + "const w 1x2 = [2 -1]\nconst b 1x2 = [10 20]\ny = row_norm(x=x, weight=w, bias=b) eps=0.5 width=2",
               "y"),
      {2 / first + 10, -3 / first + 20, -4 / second + 10, -4 / second + 20});
  expect_values(value_of(x + "const r 1x4 = [0 0 4 -4]\ny = row_norm(x=x, residual=r) eps=0.5 width=2", "y"),
                {1 / first, 3 / first, 2 / std::sqrt(2 + eps), 0});
  // Mean 1.5, deviations -0.5 1.5 -3.5 2.5, mean square 5.25.
  const double spread = std::sqrt(5.25 + eps);
  expect_values(value_of(x + "y = row_norm(x=x) kind=layer eps=0.5", "y"),
                {-0.5 / spread, 1.5 / spread, -3.5 / spread, 2.5 / spread});
}

TEST(Evaluate, SoftmaxWithAndWithoutSinks) {
  const std::string x = "const x 2x2 = [0 1; 1000 1000]\n";
  const double e = std::exp(1);
  expect_values(value_of(x + "y = softmax(x=x)", "y"), {1 / (1 + e), e / (1 + e), 0.5, 0.5});
  expect_values(value_of(x + "const s 1x1 = [1]\ny = softmax(x=x, sinks=s)", "y"),
                {1 / (1 + 2 * e), e / (1 + 2 * e), 0.5, 0.5});
  expect_values(value_of(x + "const s 2x1 = [-1000; 1000]\ny = softmax(x=x, sinks=s)", "y"),
                {1 / (1 + e), e / (1 + e), 1 / 3., 1 / 3.});
}

TEST(Evaluate, L2Norm) {
  const double first = std::sqrt(25 + 0.25), second = std::sqrt(4 + 0.25);
  expect_values(value_of("const x 1x4 = [3 4 0 2]\ny = l2_norm(x=x) eps=0.25 width=2", "y"),
                {3 / first, 4 / first, 0, 2 / second});
}

TEST(Evaluate, RopeTurnsPairsAndPassesTheRest) {
  const std::string text = R"(const x 2x5 = [1 2 3 4 5; 1 2 3 4 5]
const cos 4x2 = [1 1; 0 1; -1 0.5; 0 0]
const sin 4x2 = [0 0; 1 0; 0 2; 1 1]
)";
  // Row 1 at table row 1 does not turn; row 2 at table row 2 turns its first pair (1, 3) by a quarter.
  expect_values(value_of(text + "y = rope(x=x, cos=cos, sin=sin) width=5 half=2", "y"),
                {1, 2, 3, 4, 5, -3, 2, 1, 4, 5});
  const std::string at = text + "param p 1\ny = rope(x=x, cos=cos, sin=sin, position=p) width=5 half=2";
  expect_values(value_of(at, "y", {{"p", {3}}}), {-1, 1 - 8, -3, 4 + 2, 5, -3, -4, 1, 2, 5});
  expect_refusal(value_of(at, "y", {{"p", {4}}}), "p", "item 1 is 4, expected 1 to 3");
  // Every unit of a row turns alike.
  expect_values(
      value_of(
          "const x 1x4 = [1 2 3 4]\nconst c 1x1 = [0]\nconst s 1x1 = [1]\ny = rope(x=x, cos=c, sin=s) width=2 half=1",
          "y"),
      {-2, 1, -4, 3});
}

// ---- constants ----

TEST(Evaluate, StoredRowsAreColumnsOfAMatrixAndRowsOfATable) {
  const float file[] = {1, 2, 3, 4, 5, 6};  // three rows of two values
  const Rows rows{.format = gguf::Format::F32,
                  .data = reinterpret_cast<const std::byte*>(file),
                  .row_bytes = 8,
                  .row_values = 2,
                  .count = 3,
                  .order = {2, 0, 1}};
  const Result<ParsedGraph> parsed = parse(
      "graph g decode\nconst x 1x2 = [10 1]\nconst w 2x3\nconst t 3x2\n"
      "y = matmul(x=x, w=w)\nz = row_gather(table=t) row=1",
      "test");
  ASSERT_TRUE(parsed.ok());
  Constants constants = parsed->constants;
  constants["w"] = rows;
  constants["t"] = rows;
  Environment environment = make_environment(constants);
  const Result<void> done = evaluate(parsed->graph, environment);
  ASSERT_TRUE(done.ok()) << to_text(done.refusal());
  EXPECT_EQ(environment.values["y"], (std::vector<double>{56, 12, 34}));
  EXPECT_EQ(environment.values["z"], (std::vector<double>{5, 6}));

  constants["w"] = Rows{.data = rows.data, .row_bytes = 8, .row_values = 2, .count = 2};
  environment = make_environment(constants);
  const Result<void> refused = evaluate(parsed->graph, environment);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.refusal().reason, HasSubstr("2 rows of 2 values, expected 3 of 2 for 2x3 f32 by column"));
}

TEST(Evaluate, ConstantsWithoutValuesAndGraphsWithErrorsAreRefused) {
  expect_refusal(value_of("const x 1x1\ny = scale(x=x)", "y"), "x", "the constant has no values");
  expect_refusal(value_of("const x 1x1 = [1]\ny = scale(x=x) factor=inf", "y"), "scale y", "not a finite number (G16)");
  expect_refusal(value_of("state x 65536x65536\ny = scale(x=x)", "y"), "x", "more than 2147483648 values");
  expect_refusal(value_of("state x 32768x32768\ny = scale(x=x)\nz = scale(x=y)", "z"), "z",
                 "more than 2147483648 values");
}

// ---- forms ----

// The logits of a step at `position`, and its states in the environment.
std::vector<double> step(const StepGraph& graph, Environment& environment, std::vector<int32_t> tokens,
                         std::vector<uint32_t> positions) {
  EXPECT_TRUE(set_inputs(graph, environment, tokens, positions).ok());
  const Result<void> done = evaluate(graph, environment);
  EXPECT_TRUE(done.ok()) << to_text(done.refusal());
  std::vector<double> logits;
  for (const SequenceIo& io : graph.io.sequences) {
    const std::vector<double>& own = environment.at(graph.at(io.logits));
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

void expect_close(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-9) << "item " << i;
}

// Integer attention takes a single row, so its rows within a chunk do not see one another: it is left out here.
TEST(Forms, AChunkIsItsDecodeStepsInARow) {
  constexpr uint32_t kRows = 9;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto decode = testing::random_graph(seed, {.integers = false});
    const auto chunk = testing::random_graph(seed, {.form = {Form::Kind::Chunk, kRows, true}, .integers = false});
    const std::vector<int32_t> tokens = testing::random_tokens(seed, decode.vocabulary, kRows + 2);
    Environment one = make_environment(decode.constants), many = make_environment(chunk.constants);
    std::vector<double> expected;
    for (uint32_t r = 0; r < kRows; ++r) {
      const std::vector<double> logits = step(decode.graph, one, {tokens[r]}, {r + 1});
      expected.insert(expected.end(), logits.begin(), logits.end());
    }
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    expect_close(step(chunk.graph, many, {tokens.begin(), tokens.begin() + kRows}, {1}), expected);
    // The states go on from a chunk as from its steps.
    expect_close(step(decode.graph, many, {tokens[kRows]}, {kRows + 1}),
                 step(decode.graph, one, {tokens[kRows]}, {kRows + 1}));
  }
}

TEST(Forms, ABatchIsOneDecodeStepOfEachSequence) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto decode = testing::random_graph(seed),
               batch = testing::random_graph(seed, {.form = {Form::Kind::Batch, 3}});
    Environment together = make_environment(batch.constants);
    std::vector<double> expected;
    std::vector<int32_t> next;
    for (uint32_t s = 0; s < 3; ++s) {
      // Sequence s has s steps behind it.
      const std::vector<int32_t> tokens = testing::random_tokens(seed + s, decode.vocabulary, s + 1);
      Environment alone = make_environment(decode.constants);
      for (uint32_t r = 0; r < s; ++r) step(decode.graph, alone, {tokens[r]}, {r + 1});
      ASSERT_TRUE(copy_states({decode.graph}, alone, {batch.graph, s}, together).ok());
      const std::vector<double> logits = step(decode.graph, alone, {tokens[s]}, {s + 1});
      expected.insert(expected.end(), logits.begin(), logits.end());
      next.push_back(tokens[s]);
    }
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    expect_close(step(batch.graph, together, next, {1, 2, 3}), expected);
  }
}

TEST(Forms, StatesAreCopiedOnlyWhereTheyFit) {
  const Result<ParsedGraph> a = parse("graph a decode\nstate s 2x1\nstate t 1x1", "a");
  const Result<ParsedGraph> b = parse("graph b batch:2\nstate s_s1 3x1 sequence=1\nstate u_s0 1x1 sequence=0", "b");
  Environment from, to;
  const Result<void> shape = copy_states({a->graph}, from, {b->graph, 1}, to);
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.refusal().reason, "is 3x1 f32, that of graph a is 2x1 f32");
  const Result<void> missing = copy_states({a->graph}, from, {b->graph, 0}, to);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.refusal().subject, "u_s0");
}

TEST(Forms, InputsMustBeAsManyAsTheStepTakes) {
  const auto random = testing::random_graph(1, {.form = {Form::Kind::Chunk, 3}});
  Environment environment;
  EXPECT_FALSE(set_inputs(random.graph, environment, std::vector<int32_t>{1, 2}, std::vector<uint32_t>{1}).ok());
  EXPECT_FALSE(set_inputs(random.graph, environment, std::vector<int32_t>{1, 2, 3}, std::vector<uint32_t>{}).ok());
}

}  // namespace
}  // namespace tw::graph
