#pragma once

// Items to sites. Every site that has an item of a section holds all stages and buffers of it.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "spatial/compose.h"
#include "spatial/program.h"

namespace tw::spatial {

// Items first to first + count - 1 run on one site, in that order.
struct SiteShare {
  uint32_t site_row = 0;
  uint32_t site_col = 0;
  uint64_t first = 0;
  uint64_t count = 0;
  bool operator==(const SiteShare&) const = default;
};

// The shares of one section, by site in row-major order; sites without items have none.
using SectionPlacement = std::vector<SiteShare>;
// By section of the composition.
using Placement = std::vector<SectionPlacement>;

// Runs of consecutive items, as even as can be: no site has two items more than another. Refuses a section whose
// footprint exceeds a site's local memory.
Result<SectionPlacement> place(const Program& section, const Target& target);
Result<Placement> place(const Composition& composition, const Target& target);

// Stages on all sites together: what the size of the placed program goes by.
uint64_t placed_stages(const Program& section, const SectionPlacement& placement);

}  // namespace tw::spatial
