// Runs of the shipped model that end early.

#include "runtime/generate.h"

#include <gtest/gtest.h>

namespace tw::runtime {
namespace {

TEST(Generate, AnInterruptedPromptCountsTheTokensThatWereTaken) {
  const auto checkpoint = gguf::Checkpoint::open("models/fable-3m-q8_0.gguf");
  ASSERT_TRUE(checkpoint) << to_text(checkpoint.refusal());
  const auto tokenizer = text::Tokenizer::load(*checkpoint);
  ASSERT_TRUE(tokenizer) << to_text(tokenizer.refusal());
  std::atomic<bool> interrupted = false;
  EngineOptions options;
  options.threads = 2;
  options.chunk = 3;
  options.interrupted = &interrupted;
  const auto engine = Engine::open(*checkpoint, options);
  ASSERT_TRUE(engine) << to_text(engine.refusal());
  uint64_t steps = 0;
  (*engine)->time_steps([&](const TimedStep&) { interrupted = ++steps == 2; });
  Request request;
  request.prompt = "Once upon a time there was an old woman";
  for (const size_t want : {6, 0}) {  // after two chunks; before the first one
    const auto outcome = generate(**engine, *tokenizer, request, 0, {}, &interrupted);
    ASSERT_TRUE(outcome) << to_text(outcome.refusal());
    EXPECT_EQ(outcome->ended, Ended::Interrupted);
    EXPECT_GT(outcome->prompt_tokens.size(), 6U);
    EXPECT_EQ(outcome->prompt_taken, want);
    EXPECT_TRUE(outcome->tokens.empty());
  }
  interrupted = false;
  request.max_tokens = 1;
  const auto outcome = generate(**engine, *tokenizer, request, 0, {}, &interrupted);
  ASSERT_TRUE(outcome) << to_text(outcome.refusal());
  EXPECT_EQ(outcome->prompt_taken, outcome->prompt_tokens.size());
}

}  // namespace
}  // namespace tw::runtime
