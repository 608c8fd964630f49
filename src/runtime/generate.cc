#include "runtime/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/interrupt.h"

namespace tw::runtime {

std::string_view name(Ended ended) {
  switch (ended) {
    case Ended::EndOfText: return "end of text";
    case Ended::Length: return "length";
    case Ended::StopString: return "stop string";
    case Ended::ContextFull: return "context full";
    case Ended::Interrupted: return "interrupted";
  }
  return "?";
}

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

// Holds back text that may be the beginning of a stop string.
class StopFilter {
 public:
  explicit StopFilter(const std::vector<std::string>& stops) : stops_(stops) {}

  // Adds text; gives what can no longer be part of a stop string. After a stop string was found, nothing more.
  std::string push(std::string_view more) {
    if (found_) return {};
    held_ += more;
    size_t at = std::string::npos;
    for (const std::string& stop : stops_) at = std::min(at, held_.find(stop));
    if (at != std::string::npos) {
      found_ = true;
      held_.resize(at);
      return std::exchange(held_, {});
    }
    const size_t keep = longest_beginning();
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
    return out;
  }
  std::string flush() { return found_ ? std::string{} : std::exchange(held_, {}); }
  [[nodiscard]] bool found() const { return found_; }

 private:
  [[nodiscard]] size_t longest_beginning() const {
    size_t longest = 0;
    for (const std::string& stop : stops_) {
      for (size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
        if (held_.ends_with(std::string_view(stop).substr(0, n))) longest = n;
      }
    }
    return longest;
  }

  const std::vector<std::string>& stops_;
  std::string held_;
  bool found_ = false;
};

// One request under way: its sampler, its text, and how it ended.
class Run {
 public:
  Run(Engine& engine, const text::Tokenizer& tokenizer, const Request& request, uint32_t slot, TextSink sink)
      : engine_(engine),
        tokenizer_(tokenizer),
        request_(request),
        slot_(slot),
        sink_(std::move(sink)),
        sampler_(request.sampling, engine.facts().vocabulary),
        decoder_(tokenizer, text::StreamDecoder::Start::Continuation),
        filter_(request.stop) {}

  Result<void> take_prompt() {
    outcome_.prompt_tokens = tokenizer_.encode(request_.prompt);
    if (outcome_.prompt_tokens.empty()) {
      return refuse(RefusalKind::Usage, "prompt", "is empty, and this vocabulary has no token that begins a text",
                    "Give a prompt with -p.");
    }
    for (const Token token : outcome_.prompt_tokens) sampler_.note(token);
    engine_.reset(slot_);
    const auto from = Clock::now();
    const auto logits = engine_.extend(slot_, outcome_.prompt_tokens);
    outcome_.prompt_seconds = seconds_since(from);
    outcome_.prompt_taken = engine_.length(slot_);
    if (logits) {
      choose(*logits);
    } else if (logits.refusal().kind == RefusalKind::Interrupted) {
      end(Ended::Interrupted);
    } else {
      return logits.refusal();
    }
    return {};
  }

  // Picks the next token from the logits of the last one; may end the run.
  void choose(std::span<const float> logits) {
    if (outcome_.tokens.size() >= request_.max_tokens) return end(Ended::Length);
    next_ = sampler_.pick(logits);
    if (tokenizer_.ends_generation(next_) && !request_.ignore_end) return end(Ended::EndOfText);
    sampler_.note(next_);
    outcome_.tokens.push_back(next_);
    emit(filter_.push(decoder_.push(next_)));
    if (filter_.found()) return end(Ended::StopString);
    if (outcome_.tokens.size() >= request_.max_tokens) return end(Ended::Length);
    if (engine_.length(slot_) >= engine_.facts().context) return end(Ended::ContextFull);
  }

  void end(Ended ended) {
    if (done_) return;
    done_ = true;
    outcome_.ended = ended;
    emit(filter_.push(decoder_.flush()));
    emit(filter_.flush());
  }

  void count_step(double seconds) {
    outcome_.decode_seconds += seconds;
    ++outcome_.decode_steps;
  }

  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Token next() const { return next_; }
  [[nodiscard]] uint32_t slot() const { return slot_; }
  Outcome take() && { return std::move(outcome_); }

 private:
  void emit(const std::string& text) {
    outcome_.text += text;
    if (sink_ && !text.empty()) sink_(text);
  }

  Engine& engine_;
  const text::Tokenizer& tokenizer_;
  const Request& request_;
  uint32_t slot_;
  TextSink sink_;
  Sampler sampler_;
  text::StreamDecoder decoder_;
  StopFilter filter_;
  Outcome outcome_;
  Token next_ = 0;
  bool done_ = false;
};

// Decode steps over all runs that have not ended, in lock step.
Result<void> decode(Engine& engine, std::vector<Run>& runs, const std::atomic<bool>* interrupted) {
  std::vector<uint32_t> slots;
  std::vector<Token> tokens;
  std::vector<Run*> live;
  while (true) {
    slots.clear(), tokens.clear(), live.clear();
    for (Run& run : runs) {
      if (!run.done() && is_set(interrupted)) run.end(Ended::Interrupted);
      if (run.done()) continue;
      live.push_back(&run);
      slots.push_back(run.slot());
      tokens.push_back(run.next());
    }
    if (live.empty()) return {};
    const auto from = Clock::now();
    TW_TRY(const auto logits, engine.step(slots, tokens));
    const double seconds = seconds_since(from);
    for (size_t i = 0; i < live.size(); ++i) {
      live[i]->count_step(seconds);
      live[i]->choose(logits[i]);
    }
  }
}

Result<void> check_request(const Request& request) {
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return refuse(RefusalKind::Usage, "--stop", "is empty", "Give the text to stop at.");
  }
  return check(request.sampling);
}

}  // namespace

Result<Outcome> generate(Engine& engine, const text::Tokenizer& tokenizer, const Request& request, uint32_t slot,
                         const TextSink& sink, const std::atomic<bool>* interrupted) {
  TW_TRY_VOID(check_request(request));
  std::vector<Run> runs;
  runs.emplace_back(engine, tokenizer, request, slot, sink);
  TW_TRY_VOID(runs[0].take_prompt());
  TW_TRY_VOID(decode(engine, runs, interrupted));
  return std::move(runs[0]).take();
}

Result<std::vector<Outcome>> generate_batch(Engine& engine, const text::Tokenizer& tokenizer,
                                            const std::vector<Request>& requests,
                                            const std::function<void(size_t, std::string_view)>& sink,
                                            const std::atomic<bool>* interrupted) {
  if (requests.size() > engine.slots()) {
    return refuse(RefusalKind::TooLarge, "batch",
                  fmt::format("has {} prompts, and {} sequences are kept at once", requests.size(), engine.slots()));
  }
  std::vector<Run> runs;
  runs.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    TW_TRY_VOID(check_request(requests[i]));
    const TextSink one = sink ? TextSink([&sink, i](std::string_view text) { sink(i, text); }) : TextSink{};
    runs.emplace_back(engine, tokenizer, requests[i], static_cast<uint32_t>(i), one);
    if (const auto taken = runs.back().take_prompt(); !taken) {
      Refusal refusal = taken.refusal();
      const std::string name =
          requests[i].name.empty() ? fmt::format("prompt {} of the batch", i + 1) : requests[i].name;
      refusal.subject = fmt::format("{}: {}", name, refusal.subject);
      return refusal;
    }
  }
  TW_TRY_VOID(decode(engine, runs, interrupted));
  std::vector<Outcome> outcomes;
  outcomes.reserve(runs.size());
  for (Run& run : runs) outcomes.push_back(std::move(run).take());
  return outcomes;
}

}  // namespace tw::runtime
