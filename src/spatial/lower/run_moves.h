#pragma once

// A flat row written from runs of another: what re-cuts rows whose units do not end with a tile into rows whose units
// do, and back. Movement alone: what is no number is copied like any value and spreads nowhere.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// The elements up to `end`, from the end of the run before: those of the source from element `from` on, or zeros.
struct MovedRun {
  uint64_t end = 0;
  std::optional<uint64_t> from;
  bool operator==(const MovedRun&) const = default;
};

// Without empty runs, and zeros that follow zeros in one run.
std::vector<MovedRun> joined_zero_runs(std::span<const MovedRun> runs);

// op: operand 0 the source, the result as long as the runs. An item a tile of the result; each loads the window of the
// source that its pieces lie in, and a page that says where. Requires ends that grow to the result's size and runs
// inside the source.
Result<Program> run_moves(std::span<const MovedRun> runs, const OpView& op);

}  // namespace tw::spatial::lower
