#pragma once

// A model ready to run: its constants in the lane's storage, the carried state of a number of sequences, and a compiled
// schedule for each form of the step that has been asked for. Tokens here are the vocabulary's 0-based ids.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "graph/step_graph.h"
#include "lane/cpu/call.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/step_times.h"
#include "lane/schedule.h"
#include "model/model.h"

namespace tw::runtime {

using Token = int32_t;

struct EngineOptions {
  lane::Numerics numerics = lane::Numerics::Int8;
  lane::Order order = lane::Order::Strict;
  std::optional<lane::cpu::Isa> isa;  // none: the widest this machine has
  uint32_t threads = 0;               // 0: one a core
  uint32_t context = 0;               // positions a sequence; 0: the smaller of the model's own and 4096
  uint32_t slots = 1;                 // sequences whose state is kept at once, 1 to 64
  uint32_t chunk = 512;               // the most rows of a prompt taken in one step, 1 to 512
  // Keys and values: F32 or F16. None: F16 with Int8, whose own rounding is far coarser, else F32.
  std::optional<lane::Dtype> cache;
  lane::Dtype state = lane::Dtype::F32;  // memories of delta rules: F32 or BF16
  std::vector<std::string> held;         // rules of fusion that do not take part (fuse/rules.h)
  // When set, a long prompt ends between two chunks with a refusal of kind Interrupted.
  const std::atomic<bool>* interrupted = nullptr;
  // Called while weights are prepared, with the bytes done and the bytes of all.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// One step and its times; good until the call it is given to returns.
struct TimedStep {
  const lane::Schedule& schedule;
  std::span<const lane::cpu::Call> calls;
  const lane::cpu::StepTimes& times;
  std::span<const uint32_t> before;  // positions that each sequence had taken
};

// Sequences that an engine keeps at once.
inline constexpr uint32_t kMaxSlots = 64;

// Whether numbers are in range, whatever the machine and the model.
Result<void> check(const EngineOptions& options);

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(const gguf::Checkpoint& checkpoint, const EngineOptions& options);
  ~Engine();

  [[nodiscard]] const model::Facts& facts() const;
  [[nodiscard]] lane::cpu::Isa isa() const;
  [[nodiscard]] lane::Dtype cache() const;  // of keys and values
  [[nodiscard]] uint32_t threads() const;
  [[nodiscard]] uint32_t slots() const;
  // Tokens that the sequence of a slot has taken.
  [[nodiscard]] uint32_t length(uint32_t slot) const;
  // Empties a slot.
  void reset(uint32_t slot);
  // The slot holds `length` tokens (at most its context) whose keys, values and memories are small numbers of no
  // meaning: what is timed after them takes the time it takes after real ones.
  void assume(uint32_t slot, uint32_t length);

  // The sequence of `slot` takes `tokens` (at least one), in chunks. The logits of the last one, valid until the next
  // call. Refuses a token outside the vocabulary (naming it) and tokens past the context, before any is taken.
  Result<std::span<const float>> extend(uint32_t slot, std::span<const Token> tokens);
  // The same, giving the logits of every token in order.
  Result<void> extend_each(uint32_t slot, std::span<const Token> tokens,
                           const std::function<void(std::span<const float> logits)>& each);
  // One token for each of several different slots, in lock step: row i of the result are the logits of slots[i].
  Result<std::vector<std::span<const float>>> step(std::span<const uint32_t> slots, std::span<const Token> tokens);

  // The graph and the schedule of a form, as this engine runs it.
  Result<graph::StepGraph> graph(const graph::Form& form) const;
  Result<lane::Schedule> schedule(const graph::Form& form) const;

  // From now on each step is timed and given to `each` when it has ended; with none, no longer. Changes no bit.
  void time_steps(std::function<void(const TimedStep&)> each);

  // Carried state of a slot as bytes, for comparison in tests: every state tensor in graph order.
  [[nodiscard]] std::vector<std::byte> state_bytes(uint32_t slot) const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tw::runtime
