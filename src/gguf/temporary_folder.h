#pragma once

// For tests: a folder of one test, removed with what it holds.

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <system_error>

namespace tw::gguf {

class TemporaryFolder {
 public:
  TemporaryFolder() { std::filesystem::create_directories(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // The path of a new file that holds the bytes.
  [[nodiscard]] std::filesystem::path file(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  static std::filesystem::path next() {
    static std::atomic<int> number = 0;
    return std::filesystem::temp_directory_path() / fmt::format("tilewright_gguf_{}_{}", ::getpid(), number++);
  }
  std::filesystem::path path_ = next();
};

}  // namespace tw::gguf
