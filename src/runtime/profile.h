#pragma once

// Where the time of steps goes: sums over timed steps, launch by launch. Every nanosecond of every thread is either in
// a launch, waiting after one (for threads that are not done with it, or with what came before), or waiting for the
// step's first launch to begin.

#include <cstdint>
#include <string>
#include <vector>

#include "lane/work.h"
#include "runtime/step_names.h"

namespace tw::runtime {

// Thread time in nanoseconds, summed over threads and steps, and what was done in it.
struct Spent {
  uint64_t launches = 0;
  double busy = 0, waited = 0;
  lane::Work work;
  Spent& operator+=(const Spent& other);
};

struct ProfiledLaunch : StepLaunch {
  Spent spent;
};

struct ProfiledSteps {
  uint64_t steps = 0;
  double wall = 0;      // nanoseconds, summed over steps
  double starting = 0;  // thread time before a thread's first launch, summed like Spent

  // Thread time of all steps: what shares are shares of.
  [[nodiscard]] double thread_time(uint32_t threads) const { return wall * threads; }
};

// The steps of one form.
struct ProfiledForm : ProfiledSteps {
  graph::Form form;
  std::vector<ProfiledLaunch> launches;  // in the order in which they run
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
struct PhaseProfile : ProfiledSteps {
  std::string name;   // phase_name()
  uint64_t rows = 0;  // tokens, over all steps
  struct Kind {
    std::string kind;
    Spent spent;
  };
  std::vector<Kind> kinds;  // the most time first
  Spent all;
};
std::vector<PhaseProfile> phases_of(const Profile& profile);

}  // namespace tw::runtime
