#include "spatial/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "spatial/sizing.h"

namespace tw::spatial {

Result<SectionPlacement> place(const Program& section, const Target& target) {
  if (!fits(section, target)) return too_large(section, target);
  const uint64_t items = section.work.items.size();
  const uint64_t sites = std::min(items, target.sites());
  SectionPlacement shares;
  shares.reserve(sites);
  for (uint64_t s = 0; s < sites; ++s) {
    const uint64_t first = items * s / sites, end = items * (s + 1) / sites;
    shares.push_back(
        {static_cast<uint32_t>(s / target.site_cols), static_cast<uint32_t>(s % target.site_cols), first, end - first});
  }
  return shares;
}

Result<Placement> place(const Composition& composition, const Target& target) {
  Placement placement;
  placement.reserve(composition.sections.size());
  for (const ComposedSection& section : composition.sections) {
    TW_TRY(SectionPlacement shares, place(section.program, target));
    placement.push_back(std::move(shares));
  }
  return placement;
}

uint64_t placed_stages(const Program& section, const SectionPlacement& placement) {
  return section.stages.size() * placement.size();
}

}  // namespace tw::spatial
