#include "spatial/eps.h"

#include <fmt/format.h>

#include <cmath>

namespace tw::spatial {

Result<uint64_t> eps_nano(float eps, std::string_view subject) {
  const double units = std::nearbyint(static_cast<double>(eps) * 1e9);
  if (eps >= 0 && units < 0x1p53 && static_cast<float>(units * 1e-9) == eps) return static_cast<uint64_t>(units);
  return refuse(RefusalKind::Unsupported, subject,
                fmt::format("has the epsilon {}, expected a whole multiple of 1e-9", eps));
}

}  // namespace tw::spatial
