#include "spatial/step/examine.h"

#include "spatial/issue.h"

namespace tw::spatial::step {

SectionFigures figures_of(const Program& section) {
  SectionFigures figures{.footprint = footprint(section), .items = section.work.items.size()};
  for (const Stage& stage : section.stages) {
    if (!stage.pattern()) continue;
    const uint64_t times = runs(section, stage).times(section.work.plan, section.work.plan.num_blocks);
    const uint64_t tiles = times * stage.pattern()->tiles() * figures.items;
    const uint64_t bytes = tiles * section.tile.size() * bytes_of(section.at(*stage.tensor()).dtype);
    (stage.load() ? figures.tiles_loaded : figures.tiles_stored) += tiles;
    (stage.load() ? figures.bytes_loaded : figures.bytes_stored) += bytes;
  }
  return figures;
}

Result<Examined> examine(graph::StepGraph graph, const Target& target, const LowerOptions& options) {
  TW_TRY(LoweredStep lowered, lower_step(graph, target, options));
  return examine(std::move(graph), std::move(lowered), target);
}

Examined examine(graph::StepGraph graph, LoweredStep lowered, const Target& target) {
  Examined made{.graph = std::move(graph), .target = target, .lowered = std::move(lowered)};
  const Composition& step = made.lowered.composition;
  made.verdict = certify(step, target);
  made.failed.resize(step.sections.size());
  for (size_t f = 0; f < made.verdict.failures.size(); ++f)
    if (const auto section = made.verdict.failures[f].section) made.failed[*section].push_back(f);
  for (const ComposedSection& section : step.sections) {
    made.figures.push_back(figures_of(section.program));
    Result<SectionPlacement> shares = place(section.program, target);
    made.placement.push_back(shares ? std::move(*shares) : SectionPlacement{});
  }
  return made;
}

}  // namespace tw::spatial::step
