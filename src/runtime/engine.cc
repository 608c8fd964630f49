#include "runtime/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <thread>

#include "base/check.h"
#include "base/interrupt.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/program.h"
#include "runtime/knobs.h"

namespace tw::runtime {

namespace {

using graph::Form;
using lane::cpu::Program;

// Compiled forms that are kept: a prompt's last chunk may have any length.
constexpr size_t kKeptPrograms = 12;

// Threads wait for each other many times a step, so more of them than cores only wait longer.
constexpr uint32_t kThreadsACore = 4;
uint32_t cores() { return std::max(1U, std::thread::hardware_concurrency()); }

Result<void> check_isa(const EngineOptions& options) {
  if (!options.isa || lane::cpu::supported(*options.isa)) return {};
  return refuse(RefusalKind::Unsupported, lane::cpu::name(*options.isa),
                "this machine does not have the instruction set",
                fmt::format("The widest it has is {}.", lane::cpu::name(lane::cpu::best_isa())));
}

}  // namespace

Result<void> check(const EngineOptions& options) {
  const auto range = [](std::string_view flag, uint64_t value, uint64_t low, uint64_t high) -> Result<void> {
    if (value >= low && value <= high) return {};
    return refuse(RefusalKind::Usage, flag, fmt::format("is {}, and must be {} to {}", value, low, high));
  };
  TW_TRY_VOID(range("sequences kept at once", options.slots, 1, kMaxSlots));
  TW_TRY_VOID(range("-b", options.chunk, 1, lane::kMaxChunk));
  return range("-t", options.threads, 0, kThreadsACore * cores());
}

class Engine::Impl {
 public:
  Impl(const gguf::Checkpoint& checkpoint, model::Model model, const EngineOptions& options)
      : checkpoint_(checkpoint),
        model_(std::move(model)),
        options_(options),
        isa_(options.isa.value_or(lane::cpu::best_isa())),
        pool_(threads_of(options)),
        weights_(model_.constants()),
        states_(options.slots),
        lengths_(options.slots, 0) {}

  Result<void> prepare() {
    TW_TRY(const lane::Schedule schedule, plan(Form{}));
    TW_TRY_VOID(prepare_weights(schedule, options_.progress));
    TW_TRY_VOID(states_.prepare(schedule));
    TW_TRY(Program * decode, program(Form{}));
    (void)decode;
    return {};
  }

  Result<lane::Schedule> plan(const Form& form) const {
    TW_TRY(const graph::StepGraph graph, model_.step(form));
    return tw::plan::plan_step(graph, model_.constants(), knobs_of(options_));
  }

  Result<Program*> program(const Form& form) {
    const auto found = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const auto& held) { return held->schedule().form == form; });
    if (found != programs_.end()) {
      programs_.splice(programs_.begin(), programs_, found);
      return programs_.front().get();
    }
    TW_TRY(const lane::Schedule schedule, plan(form));
    TW_TRY_VOID(prepare_weights(schedule, {}));
    TW_TRY_VOID(states_.prepare(schedule));
    TW_TRY(auto compiled, Program::compile(schedule, isa_, weights_, states_, pool_.threads()));
    if (programs_.size() >= kKeptPrograms) {
      times_.erase(programs_.back().get());
      programs_.pop_back();
    }
    programs_.push_front(std::move(compiled));
    return programs_.front().get();
  }

  Result<void> check_tokens(uint32_t slot, std::span<const Token> tokens) const {
    TW_CHECK(slot < options_.slots, "slot {} of {}", slot, options_.slots);
    TW_CHECK(!tokens.empty(), "a step takes at least one token");
    for (const Token token : tokens) {
      if (token < 0 || static_cast<uint32_t>(token) >= model_.facts().vocabulary) {
        return refuse(RefusalKind::Usage, fmt::format("token {}", token),
                      fmt::format("is outside the vocabulary of {}", model_.facts().vocabulary));
      }
    }
    const uint64_t wanted = lengths_[slot] + tokens.size();
    if (wanted > model_.facts().context) {
      return refuse(
          RefusalKind::TooLarge, "context",
          fmt::format("is full: {} positions are taken, {} more are asked for, it holds {}", lengths_[slot],
                      tokens.size(), model_.facts().context),
          fmt::format("Ask for a longer context with -c (the model was made for {}).", model_.facts().trained_context));
    }
    return {};
  }

  Result<void> check_interrupted() const {
    if (!is_set(options_.interrupted)) return {};
    return refuse(RefusalKind::Interrupted, "prompt", "was interrupted");
  }

  void time_steps(std::function<void(const TimedStep&)> each) { timed_ = std::move(each); }

  void run(Program& p, std::span<const uint32_t> before) {
    if (!timed_) return p.run(pool_);
    auto times = times_.find(&p);
    if (times == times_.end()) times = times_.emplace(&p, p.make_times(pool_)).first;
    p.run(pool_, &times->second);
    timed_({p.schedule(), p.calls(), times->second, before});
  }

  // Runs one step of one sequence over tokens that were checked; gives the program, whose logits are those of the step.
  Result<Program*> take(uint32_t slot, std::span<const Token> tokens, bool all_logits) {
    Form form;
    if (tokens.size() > 1) form = {Form::Kind::Chunk, static_cast<uint32_t>(tokens.size()), all_logits};
    TW_TRY(Program * p, program(form));
    const uint32_t slots[] = {slot};
    p->bind(slots);
    std::transform(tokens.begin(), tokens.end(), p->tokens().begin(), [](Token token) { return token + 1; });
    p->position(0) = static_cast<int32_t>(lengths_[slot] + 1);
    run(*p, {&lengths_[slot], 1});
    lengths_[slot] += static_cast<uint32_t>(tokens.size());
    return p;
  }

  Result<std::span<const float>> extend(uint32_t slot, std::span<const Token> tokens) {
    TW_TRY_VOID(check_tokens(slot, tokens));
    std::span<const float> logits;
    while (!tokens.empty()) {
      TW_TRY_VOID(check_interrupted());
      const size_t m = std::min<size_t>(tokens.size(), options_.chunk);
      TW_TRY(Program * p, take(slot, tokens.first(m), false));
      logits = p->logits(0);
      tokens = tokens.subspan(m);
    }
    return logits;
  }

  Result<void> extend_each(uint32_t slot, std::span<const Token> tokens,
                           const std::function<void(std::span<const float>)>& each) {
    TW_TRY_VOID(check_tokens(slot, tokens));
    const size_t vocabulary = model_.facts().vocabulary;
    while (!tokens.empty()) {
      TW_TRY_VOID(check_interrupted());
      const size_t m = std::min<size_t>(tokens.size(), options_.chunk);
      TW_TRY(Program * p, take(slot, tokens.first(m), true));
      for (size_t row = 0; row < m; ++row) each(p->logits(0).subspan(row * vocabulary, vocabulary));
      tokens = tokens.subspan(m);
    }
    return {};
  }

  Result<std::vector<std::span<const float>>> step(std::span<const uint32_t> slots, std::span<const Token> tokens) {
    TW_CHECK(slots.size() == tokens.size() && !slots.empty(), "{} slots, {} tokens", slots.size(), tokens.size());
    for (size_t i = 0; i < slots.size(); ++i) TW_TRY_VOID(check_tokens(slots[i], tokens.subspan(i, 1)));
    if (slots.size() == 1) {
      TW_TRY(Program * one, take(slots[0], tokens, false));
      return std::vector{one->logits(0)};
    }
    TW_TRY(Program * p, program({Form::Kind::Batch, static_cast<uint32_t>(slots.size()), false}));
    p->bind(slots);
    std::vector<std::span<const float>> logits;
    std::vector<uint32_t> before;
    for (uint32_t i = 0; i < slots.size(); ++i) {
      before.push_back(lengths_[slots[i]]);
      p->tokens()[i] = tokens[i] + 1;
      p->position(i) = static_cast<int32_t>(before[i] + 1);
    }
    run(*p, before);
    for (uint32_t i = 0; i < slots.size(); ++i) {
      logits.push_back(p->logits(i));
      ++lengths_[slots[i]];
    }
    return logits;
  }

  void reset(uint32_t slot) {
    states_.zero(slot);
    lengths_[slot] = 0;
  }
  void assume(uint32_t slot, uint32_t length) {
    TW_CHECK(length <= model_.facts().context, "{} tokens in a context of {}", length, model_.facts().context);
    // About 1e-28 in f32 and bf16, 6e-4 in f16: no zeros, which memory may share, and nothing that overflows.
    states_.fill(slot, std::byte{0x11});
    lengths_[slot] = length;
  }

  const gguf::Checkpoint checkpoint_;  // shares the mapping
  model::Model model_;
  EngineOptions options_;
  lane::cpu::Isa isa_;
  lane::cpu::Pool pool_;
  lane::cpu::WeightStore weights_;
  lane::cpu::States states_;
  std::vector<uint32_t> lengths_;

 private:
  // The file's pages of what was packed are of no more use.
  Result<void> prepare_weights(const lane::Schedule& schedule, std::function<void(uint64_t, uint64_t)> progress) {
    const auto let_go = [this](std::span<const std::byte> bytes) { checkpoint_.forget_pages(bytes); };
    return weights_.prepare(schedule, pool_, {std::move(progress), let_go, options_.interrupted});
  }

  std::list<std::unique_ptr<Program>> programs_;  // the last used first
  std::function<void(const TimedStep&)> timed_;
  std::map<const Program*, lane::cpu::StepTimes> times_;  // of programs that ran while timed
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(const gguf::Checkpoint& checkpoint, const EngineOptions& options) {
  TW_TRY_VOID(check(options));
  TW_TRY_VOID(check_isa(options));
  TW_TRY(model::Model model, model::Model::load(checkpoint, {options.context}));
  auto impl = std::make_unique<Impl>(checkpoint, std::move(model), options);
  TW_TRY_VOID(impl->prepare());
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

const model::Facts& Engine::facts() const { return impl_->model_.facts(); }
lane::cpu::Isa Engine::isa() const { return impl_->isa_; }
lane::Dtype Engine::cache() const { return cache_of(impl_->options_); }
uint32_t Engine::threads() const { return impl_->pool_.threads(); }
uint32_t Engine::slots() const { return impl_->options_.slots; }
uint32_t Engine::length(uint32_t slot) const { return impl_->lengths_[slot]; }
void Engine::reset(uint32_t slot) { impl_->reset(slot); }
void Engine::assume(uint32_t slot, uint32_t length) { impl_->assume(slot, length); }

Result<std::span<const float>> Engine::extend(uint32_t slot, std::span<const Token> tokens) {
  return impl_->extend(slot, tokens);
}
Result<void> Engine::extend_each(uint32_t slot, std::span<const Token> tokens,
                                 const std::function<void(std::span<const float>)>& each) {
  return impl_->extend_each(slot, tokens, each);
}
Result<std::vector<std::span<const float>>> Engine::step(std::span<const uint32_t> slots,
                                                         std::span<const Token> tokens) {
  return impl_->step(slots, tokens);
}

Result<graph::StepGraph> Engine::graph(const graph::Form& form) const { return impl_->model_.step(form); }
Result<lane::Schedule> Engine::schedule(const graph::Form& form) const { return impl_->plan(form); }
void Engine::time_steps(std::function<void(const TimedStep&)> each) { impl_->time_steps(std::move(each)); }
std::vector<std::byte> Engine::state_bytes(uint32_t slot) const { return impl_->states_.bytes(slot); }

}  // namespace tw::runtime
