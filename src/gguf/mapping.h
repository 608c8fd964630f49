#pragma once

// A file mapped read-only into memory, unmapped at the end of its life.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"

namespace tw::gguf {

// "a folder", "a device", ...: what a st_mode that is no regular file's stands for.
std::string_view file_kind(uint32_t mode);

class Mapping {
 public:
  // Refuses what is no regular file (folders, pipes, devices), what cannot be read, and empty files. The file must not
  // be shortened by others while it is mapped: the system ends a process that touches what is no longer there.
  static Result<Mapping> open(const std::filesystem::path& path);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  // Drops the pages that lie wholly in the range from memory; they are read from the file again when touched.
  // Requires the range to lie in bytes().
  void forget(uint64_t offset, uint64_t count) const;

 private:
  explicit Mapping(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace tw::gguf
