#pragma once

// Sections in order over one memory, with a barrier between them. What a section reads must have been written as often
// as the sections listed before it write it: a section that is left out, or runs at another place, is a fault of the
// first one that sees the difference, before that one runs.

#include <span>
#include <vector>

#include "spatial/evaluate/evaluate.h"

namespace tw::spatial::evaluate {

struct StepOptions {
  Options sections;  // of every section
  // Which sections run, in which order, by their number in the list; all as listed when empty. Values never depend on
  // it: another order is a fault, or changes nothing.
  std::vector<uint32_t> order;
  // By section of the list, the order of its items; empty: as `sections` says.
  std::vector<std::vector<uint64_t>> items;
};

struct StepRun {
  std::optional<Fault> fault;
  uint32_t section = 0;   // that the fault is of
  std::vector<Run> runs;  // of the sections that ran, in their order
};

// Sections made ready. May run any number of times, each on the memory that the one before left.
class Step {
 public:
  static Result<Step> compile(std::span<const Program> sections);

  // Block counts that no section writes are looked at before anything runs.
  Result<StepRun> run(Memory& memory, const StepOptions& options = {});

 private:
  // A tensor that a section touches, and how often the sections before it write it.
  struct Expected {
    std::string tensor;
    uint64_t writes = 0;
  };
  struct Section {
    Evaluator evaluator;
    std::vector<Expected> expected;
    std::vector<std::string> writes;
    bool early_trip = false;  // its block count is there before the step
  };
  explicit Step(std::vector<Section> sections) : sections_(std::move(sections)) {}

  std::vector<Section> sections_;
};

}  // namespace tw::spatial::evaluate
