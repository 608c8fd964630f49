#include "spatial/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tw::spatial {
namespace {

constexpr std::array<std::string_view, kCapabilities> kCapabilityNames{
    "indirect_tiles", "indirect_elements", "data_trips", "argmax", "floor_div", "exp", "ln", "recip", "rsqrt", "silu"};

Refusal missing_datapath(const Target& target, std::string_view subject, std::string_view what, std::string_view key) {
  return refuse(RefusalKind::Missing, subject,
                fmt::format("needs {}, which target {} does not have", what, target.name),
                fmt::format("Choose a target whose file names {}.", key));
}

// The precisions that have a role must be storable and of the right kind.
struct Role {
  std::string_view key;
  std::optional<Precision> Target::*member;
  bool integer;
};
constexpr std::array<Role, 4> kRoles{{
    {"real.element", &Target::real_element, false},
    {"real.accumulator", &Target::real_accumulator, false},
    {"integer.element", &Target::integer_element, true},
    {"integer.accumulator", &Target::integer_accumulator, true},
}};

}  // namespace

std::string_view name(Capability capability) { return kCapabilityNames.at(static_cast<size_t>(capability)); }

std::optional<Capability> parse_capability(std::string_view text) {
  const auto at = std::find(kCapabilityNames.begin(), kCapabilityNames.end(), text);
  if (at == kCapabilityNames.end()) return std::nullopt;
  return static_cast<Capability>(at - kCapabilityNames.begin());
}

uint64_t Target::tiles(uint64_t elements) const {
  return std::max<uint64_t>(1, elements / tile.cols + (elements % tile.cols != 0 ? 1 : 0));
}

uint64_t Target::block_of(uint64_t tiles) const {
  for (uint64_t block = std::min<uint64_t>(tiles, accumulator_tiles); block > 1; --block)
    if (tiles % block == 0) return block;
  return 1;
}

Result<Precision> real_element(const Target& target, std::string_view subject) {
  if (target.real_element) return *target.real_element;
  return missing_datapath(target, subject, "a real elementwise datapath", "real.element");
}

Result<Precision> integer_element(const Target& target, std::string_view subject) {
  if (target.integer_element) return *target.integer_element;
  return missing_datapath(target, subject, "an integer elementwise datapath", "integer.element");
}

Result<Precision> accumulator_for(const Target& target, Precision result, std::string_view subject) {
  const bool integer = is_integer(result);
  const std::optional<Precision> accumulator = integer ? target.integer_accumulator : target.real_accumulator;
  if (accumulator) return *accumulator;
  return missing_datapath(target, subject, fmt::format("an accumulator for {} results", name(result)),
                          integer ? "integer.accumulator" : "real.accumulator");
}

Result<Precision> index_precision(const Target& target, uint64_t space, std::string_view subject) {
  for (const Precision precision : target.precisions)
    if (is_integer(precision) && space <= static_cast<uint64_t>(int_max(precision))) return precision;
  return refuse(RefusalKind::Missing, subject,
                fmt::format("needs indices up to {}, an {} on target {}, which does not have it", space,
                            name(smallest_integer(space)), target.name),
                "Choose a target with wider integers, or make the table smaller.");
}

std::vector<TargetFault> target_faults(const Target& target) {
  std::vector<TargetFault> faults;
  const auto add = [&](std::string_view key, std::string text) {
    faults.push_back({std::string(key), std::move(text)});
  };
  const auto in_range = [&](std::string_view key, uint64_t value, uint64_t last) {
    if (value < 1 || value > last) add(key, fmt::format("is {}, expected 1 to {}", value, last));
  };
  if (target.name.empty()) add("name", "is empty, expected a name");
  in_range("tile", target.tile.rows, 1024);
  in_range("tile", target.tile.cols, 1024);
  in_range("sites", target.site_rows, 1U << 16);
  in_range("sites", target.site_cols, 1U << 16);
  in_range("local_bytes", target.local_bytes, uint64_t{1} << 40);
  in_range("accumulator_tiles", target.accumulator_tiles, 1U << 16);
  for (const Role& role : kRoles) {
    const std::optional<Precision> precision = target.*role.member;
    if (!precision) continue;
    if (is_integer(*precision) != role.integer)
      add(role.key,
          fmt::format("is {}, expected {} precision", name(*precision), role.integer ? "an integer" : "a real"));
    if (!target.has(*precision)) add(role.key, fmt::format("is {}, which precisions does not list", name(*precision)));
  }
  if (target.real_element.has_value() != target.real_accumulator.has_value())
    add("real", "has an element or an accumulator alone, expected both or neither");
  if (target.integer_element.has_value() != target.integer_accumulator.has_value())
    add("integer", "has an element or an accumulator alone, expected both or neither");
  if (!target.real_element && !target.integer_element) add("real", "there is neither a real nor an integer datapath");
  for (const Precision precision : target.matmul_operands)
    if (!target.has(precision)) add("matmul_operands", fmt::format("{} is not among precisions", name(precision)));
  return faults;
}

}  // namespace tw::spatial
