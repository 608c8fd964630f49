#include "spatial/step/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tw::spatial::step {
namespace {

double difference_of(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  const double difference = std::fabs(got - want);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

}  // namespace

double Difference::relative() const {
  if (difference == 0) return 0;
  return scale > 0 ? difference / scale : std::numeric_limits<double>::infinity();
}

Difference compare(std::string tensor, std::span<const double> got, std::span<const double> want) {
  TW_CHECK(got.size() == want.size(), "{} has {} values, {} are wanted", tensor, got.size(), want.size());
  Difference most{.tensor = std::move(tensor)};
  for (uint64_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(want[i])) most.scale = std::max(most.scale, std::fabs(want[i]));
    const double difference = difference_of(got[i], want[i]);
    if (i > 0 && difference <= most.difference) continue;
    most.element = i;
    most.got = got[i];
    most.want = want[i];
    most.difference = difference;
  }
  return most;
}

uint64_t first_maximum(std::span<const double> row) {
  uint64_t best = 0;
  for (uint64_t i = 1; i < row.size(); ++i)
    if (row[i] > row[best]) best = i;
  return best;
}

}  // namespace tw::spatial::step
