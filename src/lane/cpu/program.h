#pragma once

// A schedule bound to memory and kernels: a list of kernel calls with their arguments, run by a pool of threads.
// Compiling allocates; running does not, takes no lock and looks nothing up.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lane/cpu/call.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/states.h"
#include "lane/cpu/step_times.h"
#include "lane/cpu/weights.h"
#include "lane/schedule.h"

namespace tw::lane::cpu {

class Program {
 public:
  // Binds every launch of `schedule`. Refuses, naming the launch, what this lane has no kernel for. `weights` has been
  // prepared for the schedule; both it and `states` outlive the program.
  static Result<std::unique_ptr<Program>> compile(const Schedule& schedule, Isa isa, const WeightStore& weights,
                                                  States& states, uint32_t threads);
  ~Program();

  // Which slot of `states` each sequence of the schedule works on (one, or one a sequence of the batch).
  void bind(std::span<const uint32_t> slots);

  // The step's inputs and outputs, in the program's own memory.
  [[nodiscard]] std::span<int32_t> tokens();
  [[nodiscard]] int32_t& position(uint32_t sequence);
  [[nodiscard]] std::span<const float> logits(uint32_t sequence) const;
  [[nodiscard]] std::span<const int32_t> next(uint32_t sequence) const;

  // Runs one step on all threads of `pool`, which has as many as the program was compiled for or fewer. Its times go to
  // `times` when that is given, made by make_times for as many threads.
  void run(Pool& pool, StepTimes* times = nullptr);
  [[nodiscard]] StepTimes make_times(const Pool& pool) const { return {calls().size(), pool.threads()}; }

  // The memory that the schedule's places (plain_at, quantized_at) are in.
  [[nodiscard]] std::span<std::byte> arena();
  [[nodiscard]] std::span<const Call> calls() const;
  [[nodiscard]] const Schedule& schedule() const;
  [[nodiscard]] uint64_t bytes() const;  // arena and scratch

  struct Data;

 private:
  explicit Program(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace tw::lane::cpu
