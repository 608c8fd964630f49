#pragma once

// A lowered step with all that is known of it without running it: the certificate, the placement, and the figures of
// every section. What the listing, the page and the files are made from.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/step_graph.h"
#include "spatial/certify/certify_step.h"
#include "spatial/place.h"
#include "spatial/step/lower_step.h"

namespace tw::spatial::step {

// Of one section. Of a fold whose block count is data the figures are those of the most blocks.
struct SectionFigures {
  uint64_t footprint = 0;  // bytes of a site's local memory
  uint64_t items = 0;
  uint64_t tiles_loaded = 0;  // by all items together
  uint64_t tiles_stored = 0;
  uint64_t bytes_loaded = 0;
  uint64_t bytes_stored = 0;
};
SectionFigures figures_of(const Program& section);

struct Examined {
  graph::StepGraph graph;
  Target target;
  LoweredStep lowered;
  StepVerdict verdict;
  std::vector<SectionFigures> figures;      // by section
  Placement placement;                      // by section; no shares of one that does not fit a site
  std::vector<std::vector<size_t>> failed;  // by section: its failures in the verdict

  [[nodiscard]] const Program& program(uint32_t section) const { return lowered.composition.sections[section].program; }
};
Result<Examined> examine(graph::StepGraph graph, const Target& target, const LowerOptions& options = {});
// A step that was lowered for the target, or for a larger one of its tile.
Examined examine(graph::StepGraph graph, LoweredStep lowered, const Target& target);

}  // namespace tw::spatial::step
