#include "spatial/evaluate/evaluate.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "spatial/evaluate/bindings.h"
#include "spatial/evaluate/codec.h"
#include "spatial/evaluate/site.h"
#include "spatial/validate.h"

namespace tw::spatial::evaluate {
namespace {

// Findings that a run shows by itself, as pages that are missing, left or too many, or that do not touch it.
constexpr std::array<std::string_view, 10> kRunnable{"S14", "S17", "S18", "S19", "S20",
                                                     "S21", "S22", "S24", "S25", "S26"};

bool runnable(const Finding& finding) {
  return std::find(kRunnable.begin(), kRunnable.end(), finding.code) != kRunnable.end();
}

std::vector<uint64_t> ordered_items(const Program& program, const Options& options) {
  if (options.order == ItemOrder::Given) return options.items;
  std::vector<uint64_t> items(program.work.items.size());
  std::iota(items.begin(), items.end(), 0);
  if (options.order == ItemOrder::Reversed) std::reverse(items.begin(), items.end());
  if (options.order == ItemOrder::Shuffled) std::shuffle(items.begin(), items.end(), std::mt19937_64(options.seed));
  return items;
}

// The blocks of a fold that is counted by data, or why there is no such count.
std::optional<Fault> count_blocks(const Program& program, const Stored& counts, uint64_t& blocks) {
  const Trip& trip = *program.work.k_trip;
  const Tensor& tensor = program.at(trip.tensor);
  const TilePlace place = place_of(tensor, program.tile, trip.elem / tensor.cols, trip.elem % tensor.cols);
  Fault fault{FaultKind::TripRange, program.name, {}, 0, tensor.name, 0, trip.low, trip.high};
  if (!counts.written[place.tile]) {
    fault.kind = FaultKind::UnwrittenRead;
    fault.value = static_cast<int64_t>(place.tile);
    return fault;
  }
  fault.value = integer_at(tensor.dtype, counts.codes.data(), place.tile * program.tile.size() + place.element);
  if (fault.value < trip.low || fault.value > trip.high) return fault;
  blocks = trip.count(fault.value);
  return std::nullopt;
}

}  // namespace

struct Evaluator::State {
  explicit State(Program what) : program(std::move(what)), bindings(program), site(program, bindings) {}

  Program program;
  Bindings bindings;
  Site site;
};

Evaluator::Evaluator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;
Evaluator::~Evaluator() = default;

Result<Evaluator> Evaluator::compile(Program program) {
  std::vector<Finding> findings = validate(program);
  findings.erase(std::remove_if(findings.begin(), findings.end(), runnable), findings.end());
  if (!findings.empty()) return to_refusal(program, findings);
  return Evaluator(std::make_unique<State>(std::move(program)));
}

const Program& Evaluator::program() const { return state_->program; }

Result<Run> Evaluator::run(Memory& memory, const Options& options) {
  const Program& program = state_->program;
  if (memory.tile() != program.tile)
    return refuse(RefusalKind::Conflict, program.name,
                  fmt::format("memory has tiles of {}x{}, the section of {}x{}", memory.tile().rows, memory.tile().cols,
                              program.tile.rows, program.tile.cols));
  TW_TRY_VOID(state_->bindings.open(memory));
  Run run;
  run.blocks = program.fold() ? program.work.plan.num_blocks : 1;
  if (program.work.k_trip)
    run.fault = count_blocks(program, state_->bindings.stored(program.work.k_trip->tensor), run.blocks);
  if (run.fault) return run;
  Site& site = state_->site;
  site.reset(options.poison_unwritten ? PageQueue::Blank::Poison : PageQueue::Blank::Zero);
  for (const uint64_t item : ordered_items(program, options)) {
    run.fault = site.run(item, run.blocks);
    if (run.fault) break;
  }
  run.tiles_loaded = site.tiles_loaded();
  run.tiles_stored = site.tiles_stored();
  if (!run.fault) state_->bindings.commit(memory);
  return run;
}

Result<std::optional<Fault>> Evaluator::check_trip(Memory& memory) const {
  const Program& program = state_->program;
  if (!program.work.k_trip) return std::optional<Fault>();
  TW_TRY(const Stored* counts, memory.declare(program.at(program.work.k_trip->tensor)));
  uint64_t blocks = 0;
  return count_blocks(program, *counts, blocks);
}

Result<Run> evaluate(const Program& program, Memory& memory, const Options& options) {
  TW_TRY(Evaluator evaluator, Evaluator::compile(program));
  return evaluator.run(memory, options);
}

}  // namespace tw::spatial::evaluate
