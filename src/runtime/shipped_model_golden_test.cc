// The model that ships with the project: log-probabilities in exact arithmetic, and greedy text wherever it is decided.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/engine.h"
#include "runtime/generate.h"

namespace tw::runtime {
namespace {

// Rounding to five digits in the file, and float against exact arithmetic.
constexpr double kPreciseTolerance = 2e-5;
// What 8-bit activations may move a log-probability or the distance of two logits; the file's own reference moves as
// much.
constexpr double kInt8Tolerance = 0.25;

struct Shipped {
  std::string file;
  nlohmann::json prompt;
};

std::vector<Shipped> shipped() {
  std::ifstream file("models/fable-3m.golden.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  std::vector<Shipped> all;
  for (const auto& [name, prompts] : json["files"].items()) {
    for (const auto& prompt : prompts) all.push_back({name, prompt});
  }
  return all;
}

std::unique_ptr<Engine> open(const std::string& file, lane::Numerics numerics) {
  const auto checkpoint = gguf::Checkpoint::open("models/" + file);
  EXPECT_TRUE(checkpoint);
  EngineOptions options;
  options.numerics = numerics;
  options.context = 256;
  auto engine = Engine::open(*checkpoint, options);
  EXPECT_TRUE(engine) << to_text(engine.refusal());
  return std::move(*engine);
}

double log_probability(std::span<const float> logits, Token token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return logits[static_cast<size_t>(token)] - largest - std::log(sum);
}

// The recorded tokens' log-probabilities by our logits, and the tokens that we would have picked.
struct Followed {
  std::vector<double> logprobs;
  std::vector<Token> picks;
};

Followed follow(Engine& engine, const nlohmann::json& prompt) {
  Followed followed;
  auto logits = engine.extend(0, prompt["prompt_tokens"].get<std::vector<Token>>());
  for (const Token token : prompt["tokens"].get<std::vector<Token>>()) {
    followed.logprobs.push_back(log_probability(*logits, token));
    followed.picks.push_back(static_cast<Token>(std::max_element(logits->begin(), logits->end()) - logits->begin()));
    logits = engine.extend(0, {&token, 1});
  }
  return followed;
}

TEST(ShippedModel, PreciseNumericsGiveTheExactLogProbabilities) {
  size_t compared = 0;
  for (const Shipped& one : shipped()) {
    const auto engine = open(one.file, lane::Numerics::Precise);
    const Followed followed = follow(*engine, one.prompt);
    const auto exact = one.prompt["logprobs_exact"].get<std::vector<double>>();
    const auto tokens = one.prompt["tokens"].get<std::vector<Token>>();
    const auto gap = one.prompt["top2_logit_gap"].get<std::vector<double>>();
    ASSERT_EQ(exact.size(), followed.logprobs.size());
    for (size_t i = 0; i < exact.size(); ++i, ++compared) {
      EXPECT_NEAR(followed.logprobs[i], exact[i], kPreciseTolerance) << one.file << " token " << i;
      if (gap[i] > kInt8Tolerance) {
        EXPECT_EQ(followed.picks[i], tokens[i]) << one.file << " token " << i;
      }
    }
  }
  EXPECT_GE(compared, 300U);
}

TEST(ShippedModel, QuantizedNumericsPickTheSameTokensWhereTheyAreDecided) {
  for (const Shipped& one : shipped()) {
    const auto engine = open(one.file, lane::Numerics::Int8);
    const Followed followed = follow(*engine, one.prompt);
    const auto tokens = one.prompt["tokens"].get<std::vector<Token>>();
    const auto gap = one.prompt["top2_logit_gap"].get<std::vector<double>>();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (gap[i] > kInt8Tolerance) {
        EXPECT_EQ(followed.picks[i], tokens[i]) << one.file << " token " << i;
      }
    }
  }
}

TEST(ShippedModel, ItsGreedyTextIsTheRecordedOneUpToTheFirstTokenThatIsNotDecided) {
  for (const Shipped& one : shipped()) {
    const auto checkpoint = gguf::Checkpoint::open("models/" + one.file);
    ASSERT_TRUE(checkpoint);
    const auto tokenizer = text::Tokenizer::load(*checkpoint);
    ASSERT_TRUE(tokenizer);
    const auto engine = open(one.file, lane::Numerics::Int8x2);
    Request request;
    request.prompt = one.prompt["prompt"];
    request.sampling.temperature = 0;
    request.max_tokens = static_cast<uint32_t>(one.prompt["tokens"].size());
    const auto outcome = generate(*engine, *tokenizer, request, 0);
    ASSERT_TRUE(outcome) << to_text(outcome.refusal());
    EXPECT_EQ(outcome->prompt_tokens, one.prompt["prompt_tokens"].get<std::vector<Token>>());
    const auto tokens = one.prompt["tokens"].get<std::vector<Token>>();
    const auto gap = one.prompt["top2_logit_gap"].get<std::vector<double>>();
    for (size_t i = 0; i < outcome->tokens.size() && gap[i] > kInt8Tolerance; ++i)
      EXPECT_EQ(outcome->tokens[i], tokens[i]);
  }
}

}  // namespace
}  // namespace tw::runtime
