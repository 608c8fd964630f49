#include "spatial/certify/checks.h"

namespace tw::spatial {
namespace {

// A movement's bound is what its page may have to hold.
void check_bound(const CheckContext& context, const IndexRanges& ranges, StageId id, const IndirectTile& index_tile,
                 Report& report) {
  const Precision held = context.program.at(index_tile.index).dtype;
  if (!is_integer(held)) return;  // the structure's
  if (index_tile.high > int_max(held))
    report.add(id, index_tile.index,
               fmt::format("admits indices up to {}, {} more than the {} of an {}", index_tile.high,
                           index_tile.high - int_max(held), int_max(held), name(held)));
  const std::optional<Interval>& values = ranges.values[index(index_tile.index)];
  if (values && meet(*values, {index_tile.low, index_tile.high}).empty())
    report.add(id, index_tile.index,
               fmt::format("admits indices {} to {}, its page holds {} to {}", index_tile.low, index_tile.high,
                           values->low, values->high));
}

}  // namespace

void check_indices(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  const IndexRanges& ranges = context.ranges;
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const Stage& stage = program.stages[i];
    if (const AccessPattern* pattern = stage.pattern(); pattern && pattern->origin.indirect)
      check_bound(context, ranges, StageId{i}, *pattern->origin.indirect, report);
    if (!ranges.results[i]) continue;
    const BufferId page = stage.outs[0];
    const bool position = stage.generic() && stage.generic()->pool() == Pool::ArgMax;
    const Interval held = range_of(program.at(page).dtype), made = *ranges.results[i];
    if ((position || ranges.decides[index(page)]) && !held.contains(made))
      report.add(StageId{i}, page,
                 fmt::format("makes indices of {} to {}, an {} holds {} to {}", made.low, made.high,
                             name(program.at(page).dtype), held.low, held.high));
  }
}

// The bounds that stages check on the element that counts the blocks are those the count is admitted in.
void check_folds(const CheckContext& context, Report& report) {
  report_claimed(context, report);
  const Program& program = context.program;
  if (!program.work.k_trip) return;
  const Trip& trip = *program.work.k_trip;
  const uint64_t tile = trip.elem / program.tile.cols;
  const auto at = to_signed(trip.elem % program.tile.cols);
  if (!program.at(trip.tensor).flat()) return;
  const IndexRanges& ranges = context.ranges;
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const Load* load = program.stages[i].load();
    if (!load || program.at(load->tensor).name != program.at(trip.tensor).name) continue;
    const TileAddr& origin = load->pattern.origin;
    if (origin.indirect || !origin.steps.empty() || origin.base != tile) continue;
    for (const Demand& demand : ranges.demands[index(program.stages[i].outs[0])])
      if (demand.where == Interval{at, at} && demand.value != Interval{trip.low, trip.high})
        report.add(StageId{i}, program.stages[i].outs[0],
                   fmt::format("is admitted from {} to {} where it is checked, the count of blocks from {} to {}",
                               demand.value.low, demand.value.high, trip.low, trip.high));
  }
}

}  // namespace tw::spatial
