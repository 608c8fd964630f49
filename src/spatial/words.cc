#include "spatial/words.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>

namespace tw::spatial {
namespace {

constexpr std::string_view kBits = "nan:";

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return fmt::format("{}{:016x}", kBits, std::bit_cast<uint64_t>(value));
  return fmt::to_string(value);
}

bool parse_real(std::string_view text, double& value) {
  const char* end = text.data() + text.size();
  if (text.starts_with(kBits)) {
    uint64_t bits = 0;
    const auto [stop, error] = std::from_chars(text.data() + kBits.size(), end, bits, 16);
    value = std::bit_cast<double>(bits);
    return error == std::errc{} && stop == end && std::isnan(value);
  }
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && !std::isnan(value);
}

}  // namespace tw::spatial
