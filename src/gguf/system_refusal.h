#pragma once

// The refusal of a file that the system does not let us use: why a call failed, by errno.

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/result.h"

namespace tw::gguf {

// "the file cannot be `action`: ..."
inline Refusal system_refusal(const std::filesystem::path& path, std::string_view action, int error) {
  const RefusalKind kind = error == ENOENT || error == ENOTDIR ? RefusalKind::Missing : RefusalKind::Io;
  return refuse(kind, path.string(),
                fmt::format("the file cannot be {}: {}", action, std::generic_category().message(error)));
}

}  // namespace tw::gguf
