#pragma once

// The known name that a mistyped one most likely means, for the remedies of refusals.

#include <optional>
#include <span>
#include <string_view>

namespace tw {

// The first of the known names with the fewest edits (a character put in, left out, replaced or swapped with its
// neighbour), if they are few for the length of the name. Costs at most a few thousand steps a known name: long ones
// are not looked at.
std::optional<std::string_view> near_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace tw
