// A step run on a spatial target beside its definition: small graphs, with the numbers that both sides come to.

#include "spatial/step/simulate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "graph/text.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/step/testing.h"

namespace tw::spatial::step {
namespace {

using lower::testing::t4;
using ::testing::HasSubstr;
using testing::parsed;

TEST(Simulate, SaysWhereAResultDiffersMost) {
  // 1.3 and 0.7 are no bf16 numbers, 2 and -1 are.
  const graph::ParsedGraph maps = parsed("graph maps decode\nconst a 1x4 = [2 1.3 -1 0.7]\nb = scale(x=a) factor=3\n");
  Simulator simulator(t4(), maps.constants);
  const Result<FormId> form = simulator.add(maps.graph);
  ASSERT_TRUE(form.ok()) << to_text(form.refusal());
  const Result<StepOutcome> outcome = simulator.run(*form, {}, {});
  ASSERT_TRUE(outcome.ok()) << to_text(outcome.refusal());
  ASSERT_EQ(outcome->differences.size(), 1U);
  const Difference& b = outcome->differences[0];
  EXPECT_EQ(b.tensor, "b");
  ASSERT_TRUE(b.op);
  EXPECT_EQ(index(*b.op), 0U);
  EXPECT_EQ(b.element, 1U);
  EXPECT_DOUBLE_EQ(b.want, static_cast<double>(1.3F) * 3);
  EXPECT_DOUBLE_EQ(b.got, 3.890625);  // 1.296875, the bf16 number nearest to 1.3, times 3
  EXPECT_EQ(b.scale, 6.0);
  EXPECT_EQ(outcome->worst(), &b);
  EXPECT_EQ(outcome->of("b"), &b);
  EXPECT_EQ(outcome->of("c"), nullptr);
  EXPECT_TRUE(outcome->same_choices());
  EXPECT_GT(outcome->tiles_loaded, 0U);
  EXPECT_GT(outcome->tiles_stored, 0U);
}

TEST(Simulate, IntegersAreTheDefinitionInBits) {
  const graph::ParsedGraph maps = parsed(
      "graph maps decode\nconst a 1x4 i32 = [2000 -7 100000 31]\n"
      "b = int_requant(x=a) multiplier=77 shift=3\nc = int_clamp(x=b) low=-128 high=127\nd = activate(x=c) "
      "kind=relu\n");
  Simulator simulator(t4(), maps.constants);
  const Result<FormId> form = simulator.add(maps.graph);
  ASSERT_TRUE(form.ok()) << to_text(form.refusal());
  const Result<StepOutcome> outcome = simulator.run(*form, {}, {});
  ASSERT_TRUE(outcome.ok()) << to_text(outcome.refusal());
  ASSERT_EQ(outcome->differences.size(), 3U);
  for (const Difference& difference : outcome->differences) EXPECT_EQ(difference.difference, 0) << difference.tensor;
}

TEST(Simulate, RefusesAConstantWithoutValues) {
  const graph::ParsedGraph maps = parsed("graph maps decode\nconst a 1x4\nb = scale(x=a) factor=3\n");
  Simulator simulator(t4(), maps.constants);
  const Result<FormId> form = simulator.add(maps.graph);
  ASSERT_FALSE(form.ok());
  EXPECT_THAT(to_text(form.refusal()), HasSubstr("a: the constant has no values"));
}

TEST(Simulate, StatesAreCarriedFromStepToStepAndFormToForm) {
  // The row of the position is the token's; then the sum of what rows one and two hold is read.
  constexpr std::string_view kStep =
      "param tokens {0}\nparam position 1\nconst t 3x4 = [1 2 3 4; 5 6 7 8; -1 0 0 2]\nstate s 4x4\n"
      "x = rows_gather(table=t, index=tokens)\nset_rows(table=s, src=x, index=position)\n"
      "a = row_gather(table=s) row=1\nb = row_gather(table=s) row=3\nlogits = elementwise(a=a, b=b) op=add\n"
      "next = argmax(x=logits)\nio tokens=tokens\nio sequence position=position logits=logits next=next\n";
  const auto text = [&](std::string_view form, int rows) {
    return fmt::format("graph carry {}\n", form) + fmt::format(fmt::runtime(kStep), rows);
  };
  const graph::ParsedGraph chunk = parsed(text("chunk:2", 2)), decode = parsed(text("decode", 1));
  Simulator simulator(t4(), decode.constants);
  const Result<FormId> two = simulator.add(chunk.graph), one = simulator.add(decode.graph);
  ASSERT_TRUE(two.ok()) << to_text(two.refusal());
  ASSERT_TRUE(one.ok()) << to_text(one.refusal());
  const std::vector<std::tuple<FormId, std::vector<int32_t>, uint32_t, int64_t>> steps{
      {*two, {2, 1}, 1, 4},  // 5 6 7 8 + 0
      {*one, {3}, 3, 4},     // 5 6 7 8 + -1 0 0 2
      {*one, {1}, 1, 4},     // 1 2 3 4 + -1 0 0 2
      {*two, {3, 3}, 1, 4},  // -2 0 0 4
  };
  for (const auto& [form, tokens, position, next] : steps) {
    const uint32_t positions[] = {position};
    const Result<StepOutcome> outcome = simulator.run(form, tokens, positions);
    ASSERT_TRUE(outcome.ok()) << to_text(outcome.refusal());
    ASSERT_EQ(outcome->choices.size(), 1U);
    EXPECT_EQ(outcome->choices[0].got, next);
    EXPECT_EQ(outcome->choices[0].margin, 0);
    for (const Difference& difference : outcome->differences) EXPECT_EQ(difference.difference, 0) << difference.tensor;
  }
  const uint32_t far[] = {5};
  const Result<StepOutcome> past = simulator.run(*one, std::vector<int32_t>{1}, far);
  ASSERT_FALSE(past.ok());
  EXPECT_THAT(to_text(past.refusal()), HasSubstr("position"));
}

// ---- comparing ----

TEST(Compare, AnUndefinedNumberDiffersInfinitely) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(compare("x", std::vector{1.0, kNan, kInf}, std::vector{1.0, kNan, kInf}).difference, 0);
  const Difference nan = compare("x", std::vector{1.0, 2.0, kNan}, std::vector{-4.0, 2.0, 3.0});
  EXPECT_EQ(nan.difference, kInf);
  EXPECT_EQ(nan.element, 2U);
  EXPECT_EQ(nan.relative(), kInf);
  EXPECT_EQ(compare("x", std::vector{-kInf}, std::vector{kInf}).difference, kInf);
  EXPECT_EQ(compare("x", std::vector{1.0}, std::vector{0.0}).relative(), kInf);
  const Difference finite = compare("x", std::vector{1.0, 2.5}, std::vector{1.5, 2.5});
  EXPECT_EQ(finite.element, 0U);
  EXPECT_EQ(finite.relative(), 0.2);
}

TEST(Compare, TheFirstMaximumIsThatOfAStrictScan) {
  EXPECT_EQ(first_maximum(std::vector{1.0, 3.0, 3.0}), 1U);
  EXPECT_EQ(first_maximum(std::vector{std::numeric_limits<double>::quiet_NaN(), 3.0}), 0U);
}

}  // namespace
}  // namespace tw::spatial::step
