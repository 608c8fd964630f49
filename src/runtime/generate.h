#pragma once

// From a prompt to text: takes the prompt, then picks and takes one token after the other, until something ends it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/engine.h"
#include "runtime/sampler.h"
#include "text/tokenizer.h"

namespace tw::runtime {

enum class Ended : uint8_t {
  EndOfText,    // the model picked a token that ends a text
  Length,       // as many tokens as were asked for
  StopString,   // the text holds one of the stop strings
  ContextFull,  // no position is left
  Interrupted,  // `interrupted` was set
};
std::string_view name(Ended ended);

struct Request {
  std::string prompt;
  std::string name;  // what messages call the prompt; empty: its place in the batch
  uint32_t max_tokens = 256;
  std::vector<std::string> stop;  // none of them empty
  Sampling sampling;
  bool ignore_end = false;  // goes on past an end-of-text token
};

struct Outcome {
  std::string text;  // up to, and without, a stop string
  std::vector<Token> prompt_tokens;
  size_t prompt_taken = 0;    // of the prompt's tokens: fewer than all when it was interrupted
  std::vector<Token> tokens;  // picked, without the one that ended the text
  Ended ended = Ended::Length;
  double prompt_seconds = 0;  // of the prompt's steps
  double decode_seconds = 0;  // of the steps after it
  uint32_t decode_steps = 0;
};

// Called with text that is whole characters and cannot be part of a stop string any more.
using TextSink = std::function<void(std::string_view text)>;

// Runs `request` in a slot, which is emptied first. `interrupted`, when given, ends the run before the next step.
// Refuses a prompt without tokens (an empty prompt of a vocabulary without a beginning-of-text token) or one that does
// not fit the context.
Result<Outcome> generate(Engine& engine, const text::Tokenizer& tokenizer, const Request& request, uint32_t slot,
                         const TextSink& sink = {}, const std::atomic<bool>* interrupted = nullptr);

// Several requests in lock step, one a slot from 0 on: at most engine.slots(). sink(i, text) for request i. The tokens
// of a request do not depend on the others.
Result<std::vector<Outcome>> generate_batch(Engine& engine, const text::Tokenizer& tokenizer,
                                            const std::vector<Request>& requests,
                                            const std::function<void(size_t, std::string_view)>& sink = {},
                                            const std::atomic<bool>* interrupted = nullptr);

}  // namespace tw::runtime
