#include "spatial/sizing.h"

#include <fmt/format.h>

namespace tw::spatial {

Refusal too_large(const Program& section, const Target& target) {
  return refuse(RefusalKind::TooLarge, section.subject(),
                fmt::format("section {} needs {} bytes of local memory, a site of target {} has {}", section.name,
                            footprint(section), target.name, target.local_bytes),
                "Choose a target with more local memory a site, or smaller shapes.");
}

Result<Program> within(Result<Program> section, const Target& target) {
  if (!section || fits(*section, target)) return section;
  return too_large(*section, target);
}

}  // namespace tw::spatial
