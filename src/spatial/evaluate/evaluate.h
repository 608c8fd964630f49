#pragma once

// The host evaluator: runs a program over a memory exactly as the IR says, bit for bit.
//
//   Memory memory(program.tile);
//   TW_TRY_VOID(memory.set(program.tensors[0], values));
//   TW_TRY(const Run run, evaluate(program, memory));
//   if (run.fault) ...
//
// Values do not depend on where items are placed nor on their order; a program whose values would is stopped by a
// StaleRead or WriteConflict in any order. A result is new in the memory when the whole section has run; state is
// updated in place.

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "spatial/evaluate/fault.h"
#include "spatial/evaluate/memory.h"
#include "spatial/program.h"

namespace tw::spatial::evaluate {

// Given: as Options::items says, which has every item once.
enum class ItemOrder : uint8_t { Listed, Reversed, Shuffled, Given };

struct Options {
  ItemOrder order = ItemOrder::Listed;
  uint64_t seed = 0;            // of the shuffle
  std::vector<uint64_t> items;  // of a given order
  // Points of computed pages that no stage writes are NaN or the smallest integer, not zero: for tests that nothing
  // reads them.
  bool poison_unwritten = false;
};

struct Run {
  std::optional<Fault> fault;
  uint64_t blocks = 1;  // of the fold, as its trip count said
  uint64_t tiles_loaded = 0;
  uint64_t tiles_stored = 0;
};

// A program made ready: its stages compiled. May run any number of times; not from two threads at once.
class Evaluator {
 public:
  // Refused when the program is ill-formed in a way that leaves nothing to run (validate.h). Findings about the flow of
  // pages are not: such a program runs and faults where it misbehaves.
  static Result<Evaluator> compile(Program program);
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;
  ~Evaluator();

  [[nodiscard]] const Program& program() const;
  // Tensors that the memory does not have are declared from their inits. Refused when one is there otherwise.
  Result<Run> run(Memory& memory, const Options& options = {});
  // The fault of its block count alone, if it has one.
  Result<std::optional<Fault>> check_trip(Memory& memory) const;

 private:
  struct State;
  explicit Evaluator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

Result<Run> evaluate(const Program& program, Memory& memory, const Options& options = {});

}  // namespace tw::spatial::evaluate
