// Writes the seeds of text_fuzz and json_fuzz: small programs that make sense and programs made of anything, each in
// both forms.
//
// usage: spatial_fuzz_seeds FOLDER

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "spatial/any_program.h"
#include "spatial/json.h"
#include "spatial/testing.h"
#include "spatial/text.h"

namespace {

namespace fs = std::filesystem;
using namespace tw::spatial;

constexpr int kAnyPrograms = 3;

std::vector<std::pair<std::string, Program>> seeds() {
  const Target target = testing::toy_target({4, 4}, 8);
  std::vector<std::pair<std::string, Program>> all{{"add", testing::flat_add(target, 8).value()},
                                                   {"fold", testing::row_sum_fold(target, 2, true).value()},
                                                   {"gather", testing::tile_gather(target, 3).value()},
                                                   {"product", testing::streamed_product(target, 1, 2, 2).value()}};
  std::mt19937 random(1);
  for (int i = 0; i < kAnyPrograms; ++i) all.emplace_back(fmt::format("any_{}", i), testing::any_program(random));
  return all;
}

bool save(const fs::path& path, const std::string& text) {
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: spatial_fuzz_seeds FOLDER\n");
    return 2;
  }
  const fs::path folder = argv[1];
  bool saved = true;
  for (const auto& [name, program] : seeds())
    saved = saved && save(folder / "spatial_text" / (name + ".txt"), print(program)) &&
            save(folder / "spatial_json" / (name + ".json"), to_json(program));
  if (!saved) fmt::print(stderr, "spatial_fuzz_seeds: cannot write to {}\n", folder.string());
  return saved ? 0 : 1;
}
