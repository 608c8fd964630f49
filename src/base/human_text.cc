#include "base/human_text.h"

#include <fmt/format.h>

#include <array>

namespace tw {

std::string human_bytes(uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string human_count(uint64_t count) {
  constexpr std::array kUnits{"", " K", " M", " B", " T"};
  auto value = static_cast<double>(count);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) value /= 1000, ++unit;
  return unit == 0 ? fmt::format("{}", count) : fmt::format("{:.2f}{}", value, kUnits[unit]);
}

}  // namespace tw
