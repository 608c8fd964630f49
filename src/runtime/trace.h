#pragma once

// Timed steps as a file of Chrome's trace event format, which Perfetto and chrome://tracing show: a track for the steps
// and one for each thread, an event for each launch on it, named by its kind and the first op it computes.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/step_names.h"

namespace tw::runtime {

class Trace {
 public:
  // Keeps the first `steps` steps of each phase (prefill, decode, batch). `engine` outlives it.
  explicit Trace(const Engine& engine, uint32_t steps = 32) : engine_(engine), limit_(steps) {}

  void add(const TimedStep& step);
  void restart();
  // `title` names the process that the tracks belong to.
  [[nodiscard]] Result<void> write(const std::filesystem::path& path, const std::string& title) const;

 private:
  struct Form {
    graph::Form form;
    std::vector<StepLaunch> launches;
  };
  struct Event {
    uint32_t launch = 0;  // of the form's launches
    unsigned thread = 0;
    lane::cpu::StepTimes::Span span;
  };
  struct Step {
    size_t form = 0;
    uint32_t position = 0;  // that the first sequence begins at
    lane::cpu::StepTimes::Span span;
    std::vector<Event> events;
  };
  size_t form_of(const TimedStep& step);

  const Engine& engine_;
  uint32_t limit_;
  unsigned threads_ = 0;
  std::vector<Form> forms_;
  std::vector<Step> steps_;
  std::map<std::string, uint32_t> kept_;  // steps by phase
};

}  // namespace tw::runtime
