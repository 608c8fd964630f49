// Writes the seeds of checkpoint_fuzz: small valid files that hold every kind of value, and versions and parts of them.
//
// usage: gguf_checkpoint_seeds FOLDER

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>

#include "gguf/file_builder.h"
#include "gguf/sample_files.h"

namespace {

namespace fs = std::filesystem;
using namespace tw::gguf;

bool save(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

std::vector<std::byte> version_2() {
  FileBuilder file(2, 3, 2);
  file.string("general.architecture", "seed")
      .u32("general.alignment", 8)
      .array("a", ValueType::Bool, 2)
      .raw({"\0\1", 2});
  file.tensor("b", {2, 1}, 8).tensor("a", {1}, 0).pad(8).zeros(16);
  return file.bytes();
}

std::vector<std::byte> split_part() {
  FileBuilder file(1, 3);
  file.key("split.no", ValueType::U16).number<uint16_t>(0);
  file.key("split.count", ValueType::U16).number<uint16_t>(1);
  file.key("split.tensors.count", ValueType::I32).number<int32_t>(1);
  file.tensor("t", {8}, 0).pad(32).zeros(32);
  return file.bytes();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: gguf_checkpoint_seeds FOLDER\n");
    return 2;
  }
  const fs::path folder = argv[1];
  std::error_code failure;
  fs::create_directories(folder, failure);
  bool saved = save(folder / "version_2.gguf", version_2()) && save(folder / "split_of_one.gguf", split_part());
  for (const SampleFile& sample : sample_files())
    saved = saved && save(folder / (sample.name + ".gguf"), write_bytes(sample.spec, source_of(sample)).value());
  if (!saved) fmt::print(stderr, "gguf_checkpoint_seeds: cannot write to {}\n", folder.string());
  return saved ? 0 : 1;
}
