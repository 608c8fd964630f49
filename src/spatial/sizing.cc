#include "spatial/sizing.h"

#include <fmt/format.h>

namespace tw::spatial {

Result<Program> within(Result<Program> section, const Target& target) {
  if (!section || fits(*section, target)) return section;
  const std::optional<TensorId> result = section->result();
  return refuse(RefusalKind::TooLarge, result ? section->at(*result).name : section->name,
                fmt::format("section {} needs {} bytes of local memory, a site of target {} has {}", section->name,
                            footprint(*section), target.name, target.local_bytes),
                "Choose a target with more local memory a site, or smaller shapes.");
}

}  // namespace tw::spatial
