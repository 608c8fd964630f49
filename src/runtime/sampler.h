#pragma once

// Picks the next token from logits. Everything here is defined to the bit, so that a seed gives the same tokens on
// every machine (docs/sampling.md): the order of the steps, the order of every sum, the random numbers and the
// exponential.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tw::runtime {

struct Sampling {
  float temperature = 0.8F;      // 0: the largest logit, lowest id first; no random number is drawn
  uint32_t top_k = 40;           // keep this many of the largest logits; 0: all
  float top_p = 0.95F;           // keep the fewest whose probabilities reach this much; 1: all
  float min_p = 0.05F;           // keep those at least this much of the largest probability; 0: all
  float repeat_penalty = 1;      // above 1: tokens seen lately become less likely
  float presence_penalty = 0;    // taken off the logit of a token seen lately
  float frequency_penalty = 0;   // taken off once for every time
  uint32_t penalty_window = 64;  // how many tokens are "lately"; 0: none
  uint64_t seed = 1;
};

// Refuses a value outside its range, naming the flag.
Result<void> check(const Sampling& sampling);

// The n-th number of a seed's stream, n from 0: uniform in [0, 1) on the grid of 2^-53 (SplitMix64 by counter).
double random_number(uint64_t seed, uint64_t n);

class Sampler {
 public:
  // Requires check(sampling).
  Sampler(const Sampling& sampling, uint32_t vocabulary);

  // Notes a token of the text (of the prompt, or one that was picked) for the penalties.
  void note(int32_t token);
  // Requires logits.size() to be the vocabulary. Does not note the token. Allocates nothing.
  int32_t pick(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    int32_t token;
  };
  void gather(std::span<const float> logits);
  void keep_top_k();
  void keep_probable();
  int32_t draw();

  Sampling sampling_;
  std::vector<Candidate> candidates_;  // what is left, largest first
  std::vector<uint32_t> seen_;         // how often each token is in the window
  std::vector<int32_t> window_;        // a ring of the last tokens
  uint64_t noted_ = 0, drawn_ = 0;
};

}  // namespace tw::runtime
