#include "runtime/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tw::runtime {
namespace {

Sampling plain() {
  Sampling s;
  s.temperature = 1, s.top_k = 0, s.top_p = 1, s.min_p = 0, s.repeat_penalty = 1;
  return s;
}

std::map<int32_t, int> draws(const Sampling& sampling, const std::vector<float>& logits, int count) {
  Sampler sampler(sampling, static_cast<uint32_t>(logits.size()));
  std::map<int32_t, int> seen;
  for (int i = 0; i < count; ++i) ++seen[sampler.pick(logits)];
  return seen;
}

TEST(Sampler, TheRandomNumbersAreSplitMix64ByCounter) {
  // The generator's published first outputs for seed 1234567 are 6457827717110365317, 3203168211198807973.
  EXPECT_EQ(random_number(1234567, 0), static_cast<double>(6457827717110365317U >> 11) * 0x1p-53);
  EXPECT_EQ(random_number(1234567, 1), static_cast<double>(3203168211198807973U >> 11) * 0x1p-53);
}

TEST(Sampler, ZeroTemperatureTakesTheFirstOfTheLargest) {
  Sampling s = plain();
  s.temperature = 0;
  EXPECT_EQ(draws(s, {0, 3, 1, 3}, 5), (std::map<int32_t, int>{{1, 5}}));
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  const std::vector<float> logits{std::log(1.0F), std::log(2.0F), std::log(5.0F)};
  const auto seen = draws(plain(), logits, 8000);
  EXPECT_NEAR(seen.at(0), 1000, 120);
  EXPECT_NEAR(seen.at(1), 2000, 160);
  EXPECT_NEAR(seen.at(2), 5000, 180);
}

TEST(Sampler, TopKKeepsTheLargestLowerIdsFirst) {
  Sampling s = plain();
  s.top_k = 2;
  EXPECT_THAT(draws(s, {1, 1, 1, 0}, 200), testing::ElementsAre(testing::Key(0), testing::Key(1)));
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  Sampling s = plain();
  s.top_p = 0.7F;  // of 5/8, 2/8, 1/8 the first two
  const std::vector<float> logits{std::log(1.0F), std::log(2.0F), std::log(5.0F)};
  EXPECT_THAT(draws(s, logits, 500), testing::ElementsAre(testing::Key(1), testing::Key(2)));
}

TEST(Sampler, MinPKeepsWhatIsNearTheLikeliest) {
  Sampling s = plain();
  s.min_p = 0.3F;  // next to 5: 2 is 0.4, 1 is 0.2
  const std::vector<float> logits{std::log(1.0F), std::log(2.0F), std::log(5.0F)};
  EXPECT_THAT(draws(s, logits, 500), testing::ElementsAre(testing::Key(1), testing::Key(2)));
}

TEST(Sampler, PenaltiesFallOnTokensOfTheWindow) {
  Sampling s = plain();
  s.temperature = 0;
  s.penalty_window = 2;
  s.presence_penalty = 1;
  Sampler sampler(s, 3);
  const std::vector<float> logits{2.0F, 1.5F, 0};
  EXPECT_EQ(sampler.pick(logits), 0);
  sampler.note(0);
  EXPECT_EQ(sampler.pick(logits), 1);
  sampler.note(2);
  sampler.note(2);  // token 0 has left the window
  EXPECT_EQ(sampler.pick(logits), 0);
}

TEST(Sampler, RepeatPenaltyDividesPositiveLogitsAndMultipliesNegativeOnes) {
  Sampling s = plain();
  s.temperature = 0;
  s.repeat_penalty = 2;
  Sampler sampler(s, 2);
  sampler.note(0);
  EXPECT_EQ(sampler.pick(std::vector<float>{3, 2}), 1);    // 1.5 against 2
  EXPECT_EQ(sampler.pick(std::vector<float>{-2, -3}), 1);  // -4 against -3
}

TEST(Sampler, NaNIsTheLeastLikelyAndAllNaNStillAnswers) {
  Sampling s;
  Sampler sampler(s, 3);
  EXPECT_EQ(sampler.pick(std::vector<float>{NAN, 1, NAN}), 1);
  EXPECT_EQ(sampler.pick(std::vector<float>{NAN, NAN, NAN}), 0);
  EXPECT_EQ(sampler.pick(std::vector<float>{1, INFINITY, 0}), 1);
}

TEST(Sampler, ASeedGivesTheSameTokens) {
  std::vector<float> logits(50);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 37) % 11) * 0.5F;
  Sampling s;
  s.seed = 42;
  Sampler a(s, 50), b(s, 50);
  std::vector<int32_t> first, second;
  for (int i = 0; i < 12; ++i) first.push_back(a.pick(logits)), second.push_back(b.pick(logits));
  EXPECT_EQ(first, second);
  s.seed = 43;
  Sampler c(s, 50);
  std::vector<int32_t> other;
  for (int i = 0; i < 12; ++i) other.push_back(c.pick(logits));
  EXPECT_NE(first, other);
}

TEST(Sampler, RefusesWhatIsOutOfRange) {
  for (const auto change : {+[](Sampling& s) { s.temperature = -1; }, +[](Sampling& s) { s.top_p = 1.5F; },
                            +[](Sampling& s) { s.min_p = -0.1F; }, +[](Sampling& s) { s.repeat_penalty = 0; },
                            +[](Sampling& s) { s.temperature = NAN; }}) {
    Sampling s;
    change(s);
    const auto checked = check(s);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.refusal().kind, RefusalKind::Usage);
  }
  EXPECT_TRUE(check(Sampling{}));
}

}  // namespace
}  // namespace tw::runtime
