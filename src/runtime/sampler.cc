#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/math_contract.h"

namespace tw::runtime {

Result<void> check(const Sampling& s) {
  const auto range = [](std::string_view flag, double value, double low, double high) -> Result<void> {
    if (value >= low && value <= high) return {};
    return refuse(RefusalKind::Usage, flag, fmt::format("is {}, and must be {} to {}", value, low, high));
  };
  TW_TRY_VOID(range("--temp", s.temperature, 0, 100));
  TW_TRY_VOID(range("--top-p", s.top_p, 0, 1));
  TW_TRY_VOID(range("--min-p", s.min_p, 0, 1));
  TW_TRY_VOID(range("--repeat-penalty", s.repeat_penalty, 0.01, 100));
  TW_TRY_VOID(range("--presence-penalty", s.presence_penalty, -100, 100));
  TW_TRY_VOID(range("--frequency-penalty", s.frequency_penalty, -100, 100));
  TW_TRY_VOID(range("--repeat-last-n", s.penalty_window, 0, 1 << 20));
  return {};
}

double random_number(uint64_t seed, uint64_t n) {
  uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

Sampler::Sampler(const Sampling& sampling, uint32_t vocabulary)
    : sampling_(sampling), seen_(vocabulary, 0), window_(sampling.penalty_window, -1) {
  candidates_.reserve(vocabulary);
}

void Sampler::note(int32_t token) {
  if (window_.empty()) return;
  TW_CHECK(token >= 0 && static_cast<size_t>(token) < seen_.size(), "token {} of {}", token, seen_.size());
  int32_t& slot = window_[noted_++ % window_.size()];
  if (slot >= 0) --seen_[static_cast<size_t>(slot)];
  slot = token;
  ++seen_[static_cast<size_t>(token)];
}

// A NaN takes part as the least likely of all.
void Sampler::gather(std::span<const float> logits) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    float logit = std::isnan(logits[i]) ? -INFINITY : logits[i];
    if (const uint32_t times = seen_[i]; times != 0) {
      logit = logit > 0 ? logit / sampling_.repeat_penalty : logit * sampling_.repeat_penalty;
      logit = logit - sampling_.presence_penalty;
      logit = logit - static_cast<float>(times) * sampling_.frequency_penalty;
    }
    candidates_.push_back({logit, static_cast<int32_t>(i)});
  }
}

void Sampler::keep_top_k() {
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  const size_t k = sampling_.top_k == 0 ? candidates_.size() : std::min<size_t>(sampling_.top_k, candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(k), candidates_.end(), before);
  candidates_.resize(k);
}

// top-p, then min-p, both by the probabilities among what top-k kept, before the temperature.
void Sampler::keep_probable() {
  const float largest = candidates_.front().logit;
  const auto weight = [&](const Candidate& c) { return static_cast<double>(math::exp(c.logit - largest)); };
  if (sampling_.top_p < 1) {
    double total = 0, reached = 0;
    for (const Candidate& candidate : candidates_) total += weight(candidate);
    size_t keep = 0;
    while (keep < candidates_.size()) {
      reached += weight(candidates_[keep++]);
      if (reached >= static_cast<double>(sampling_.top_p) * total) break;
    }
    candidates_.resize(keep);
  }
  if (sampling_.min_p > 0) {
    size_t keep = 1;
    while (keep < candidates_.size() && weight(candidates_[keep]) >= static_cast<double>(sampling_.min_p)) ++keep;
    candidates_.resize(keep);
  }
}

int32_t Sampler::draw() {
  const float largest = candidates_.front().logit;
  const auto weight = [&](const Candidate& c) {
    return static_cast<double>(math::exp((c.logit - largest) / sampling_.temperature));
  };
  double total = 0;
  for (const Candidate& candidate : candidates_) total += weight(candidate);
  const double at = random_number(sampling_.seed, drawn_++) * total;
  double reached = 0;
  for (const Candidate& candidate : candidates_) {
    reached += weight(candidate);
    if (reached > at) return candidate.token;
  }
  return candidates_.back().token;
}

int32_t Sampler::pick(std::span<const float> logits) {
  TW_CHECK(logits.size() == seen_.size(), "{} logits for a vocabulary of {}", logits.size(), seen_.size());
  gather(logits);
  if (sampling_.temperature <= 0) {
    const auto best = std::max_element(candidates_.begin(), candidates_.end(),
                                       [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; });
    return best->token;
  }
  keep_top_k();
  if (!std::isfinite(candidates_.front().logit)) return candidates_.front().token;
  keep_probable();
  return draw();
}

}  // namespace tw::runtime
