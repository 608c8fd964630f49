#include "base/human_text.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace tw {

namespace {

constexpr size_t kScales = 5;

// value over `step` as often as that leaves 1 and more, and how often, at most kScales - 1 times.
std::pair<double, size_t> scaled(uint64_t value, double step) {
  auto rest = static_cast<double>(value);
  size_t times = 0;
  while (rest >= step && times + 1 < kScales) rest /= step, ++times;
  return {rest, times};
}

}  // namespace

std::string human_bytes(uint64_t bytes) {
  constexpr std::array<std::string_view, kScales> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  const auto [value, unit] = scaled(bytes, 1024);
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string human_count(uint64_t count) {
  constexpr std::array<std::string_view, kScales> kUnits{"", " K", " M", " B", " T"};
  const auto [value, unit] = scaled(count, 1000);
  return unit == 0 ? fmt::format("{}", count) : fmt::format("{:.2f}{}", value, kUnits[unit]);
}

}  // namespace tw
