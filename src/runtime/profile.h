#pragma once

// Where the time of steps goes: sums over timed steps, launch by launch. Every nanosecond of every thread is either in
// a launch, waiting after one (for threads that are not done with it, or with what came before), or waiting for the
// step's first launch to begin.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lane/work.h"
#include "runtime/engine.h"

namespace tw::runtime {

// Thread time in nanoseconds, summed over threads and steps, and what was done in it.
struct Spent {
  uint64_t launches = 0;
  double busy = 0, waited = 0;
  lane::Work work;
  Spent& operator+=(const Spent& other);
};

struct ProfiledLaunch {
  uint32_t launch = 0;  // of the schedule
  std::string kind;
  std::string ops;  // the graph ops it computes, by name
  Spent spent;
};

// The steps of one form.
struct ProfiledForm {
  graph::Form form;
  uint64_t steps = 0;
  double wall = 0;                       // nanoseconds, summed over steps
  double starting = 0;                   // thread time before a thread's first launch, summed like Spent
  std::vector<ProfiledLaunch> launches;  // those that run a kernel, in order

  // Thread time of all steps: what shares are shares of.
  [[nodiscard]] double thread_time(uint32_t threads) const { return wall * threads; }
};

class Profile {
 public:
  // `engine` outlives it; ops are named from its graphs.
  explicit Profile(const Engine& engine) : engine_(engine) {}

  void add(const TimedStep& step);
  // Forgets the times, not the forms.
  void restart();
  [[nodiscard]] const std::vector<ProfiledForm>& forms() const { return forms_; }

 private:
  ProfiledForm& form_of(const TimedStep& step);

  const Engine& engine_;
  std::vector<ProfiledForm> forms_;
};

// The launches of some forms of a step, prefill or decode, added up.
struct PhaseProfile {
  std::string name;  // "prefill", "decode", "batch of 8"
  uint64_t steps = 0, rows = 0;
  double wall = 0, starting = 0;
  struct Kind {
    std::string kind;
    Spent spent;
  };
  std::vector<Kind> kinds;  // the most time first
  Spent all;
};
std::vector<PhaseProfile> phases_of(const Profile& profile);
std::string phase_name(const graph::Form& form);

// The ops of each launch of a schedule as a reader names them: "matmul blk.0.q, rope blk.0.q_rope".
std::vector<std::string> launch_ops(const lane::Schedule& schedule, const graph::StepGraph& graph);

}  // namespace tw::runtime
