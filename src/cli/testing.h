#pragma once

// What the tests of the command line share: a verb run in this process, files of the test's own.

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.h"

namespace tw::cli {

struct Ran {
  int code = -1;
  std::string out, err;
};

inline Ran run(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"tilewright"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.code = run_app(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

// A file of the test's own that is gone afterwards.
class Scratch {
 public:
  explicit Scratch(std::string_view name)
      : path_(std::filesystem::temp_directory_path() /
              (std::to_string(getpid()) + "-" + std::to_string(next()++) + "-" + std::string(name))) {}
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  static int& next() {
    static int count = 0;
    return count;
  }
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tw::cli
