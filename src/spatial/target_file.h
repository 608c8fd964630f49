#pragma once

// Targets from files: TOML, one target a file (targets/*.toml). Every key is checked; a key that is not known is
// refused, so that a typing mistake does not become a default.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spatial/target.h"

namespace tw::spatial {

// `label` is what refusals call the text: its path.
Result<Target> parse_target(std::string_view text, std::string_view label);
Result<Target> read_target(const std::string& path);

// The target a command line names: a path (it has a / or ends in .toml), or the stem of a file of `folder`.
Result<Target> find_target(std::string_view name_or_path, const std::string& folder = "targets");
// The stems of the target files of a folder, in order.
std::vector<std::string> target_names(const std::string& folder = "targets");

}  // namespace tw::spatial
