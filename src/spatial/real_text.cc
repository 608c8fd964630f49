#include "spatial/real_text.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>

#include "base/parse_number.h"

namespace tw::spatial {
namespace {

constexpr std::string_view kBits = "nan:";

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return fmt::format("{}{:016x}", kBits, std::bit_cast<uint64_t>(value));
  return fmt::to_string(value);
}

bool parse_real(std::string_view text, double& value) {
  if (!text.starts_with(kBits)) return parse_number(text, value) && !std::isnan(value);
  uint64_t bits = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + kBits.size(), end, bits, 16);
  value = std::bit_cast<double>(bits);
  return error == std::errc{} && stop == end && std::isnan(value);
}

}  // namespace tw::spatial
