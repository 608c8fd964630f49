// Every golden model of the known families, evaluated in double precision from its step graphs, against the reference
// runtime's logits on the same weights: as a chunk, one token a step, in chunks of 7, and in a batch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/golden_files.h"
#include "model/model.h"
#include "model/step_runner.h"

namespace tw::model {
namespace {

class GoldenModel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    golden_ = read_golden(GetParam());
    auto checkpoint = gguf::Checkpoint::open(golden_.folder / "model.gguf");
    ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
    auto model = Model::load(*checkpoint, {.context = static_cast<uint32_t>(golden_.tokens.size())});
    ASSERT_TRUE(model.ok()) << to_text(model.refusal());
    model_ = std::make_unique<Model>(std::move(*model));
  }

  Rows logits(uint32_t rows) const {
    auto out = StepRunner(*model_).run(golden_.tokens, rows);
    EXPECT_TRUE(out.ok()) << to_text(out.refusal());
    return out.ok() ? *out : Rows{};
  }

  void expect_reference(const Rows& rows) const {
    ASSERT_EQ(rows.size(), golden_.tokens.size());
    const auto stored = std::span(rows).subspan(golden_.first_row, golden_.expected.size());
    const double difference = largest_difference(stored, golden_.expected);
    EXPECT_LE(difference, golden_.tolerance) << "largest difference of a logit";
    RecordProperty("difference", std::to_string(difference));
  }

  Golden golden_;
  std::unique_ptr<Model> model_;
};

TEST_P(GoldenModel, ChunkOfAllTokensEqualsTheReference) { expect_reference(logits(512)); }

TEST_P(GoldenModel, PiecesEqualTheReference) {
  expect_reference(logits(1));
  expect_reference(logits(7));
}

TEST_P(GoldenModel, BatchEqualsEachSequenceAlone) {
  const size_t count = std::min<size_t>(24, golden_.tokens.size() / 2);
  const std::vector<int32_t> first(golden_.tokens.begin(), golden_.tokens.begin() + static_cast<int64_t>(count));
  const std::vector<int32_t> second(golden_.tokens.end() - static_cast<int64_t>(count), golden_.tokens.end());
  auto batch = StepRunner(*model_).run_batch({first, second});
  ASSERT_TRUE(batch.ok()) << to_text(batch.refusal());
  auto alone = StepRunner(*model_).run(first, 1);
  auto other = StepRunner(*model_).run(second, 1);
  ASSERT_TRUE(alone.ok() && other.ok());
  EXPECT_EQ((*batch)[0], *alone);
  EXPECT_EQ((*batch)[1], *other);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::ValuesIn(golden_names()), [](const auto& golden) {
  std::string name = golden.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenModel);

// The shipped model: the log-probabilities that its training program computed in exact arithmetic.
TEST(ShippedModel, LogProbabilitiesAreTheExactOnes) {
  std::ifstream file("models/fable-3m.golden.json");
  if (!file) GTEST_SKIP() << "models/fable-3m.golden.json is not there";
  const auto json = nlohmann::json::parse(file);
  for (const auto& [name, cases] : json["files"].items()) {
    auto checkpoint = gguf::Checkpoint::open(std::filesystem::path("models") / name);
    ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
    auto model = Model::load(*checkpoint);
    ASSERT_TRUE(model.ok()) << to_text(model.refusal());
    const auto& sample = cases[0];
    std::vector<int32_t> tokens;
    for (const auto& token : sample["prompt_tokens"]) tokens.push_back(token.get<int32_t>() + 1);
    const size_t prompt = tokens.size();
    const size_t compared = 16;
    for (size_t i = 0; i < compared; ++i) tokens.push_back(sample["tokens"][i].get<int32_t>() + 1);
    auto rows = StepRunner(*model).run(tokens, 512);
    ASSERT_TRUE(rows.ok()) << to_text(rows.refusal());
    for (size_t i = 0; i < compared; ++i) {
      const std::vector<double>& row = (*rows)[prompt + i - 1];
      const double top = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (const double logit : row) sum += std::exp(logit - top);
      const double found = row[static_cast<size_t>(tokens[prompt + i]) - 1] - top - std::log(sum);
      EXPECT_NEAR(found, sample["logprobs_exact"][i].get<double>(), 2e-5) << name << " token " << i;
    }
  }
}

}  // namespace
}  // namespace tw::model
