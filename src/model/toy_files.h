#pragma once

// Synthesized toy checkpoints in memory, and changed copies of them. Used by tests only.

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gguf/checkpoint.h"
#include "gguf/writer.h"
#include "model/synth.h"

namespace tw::model {

// A checkpoint whose parts can be changed before it is written out.
struct ToyFile {
  gguf::FileSpec spec;
  std::vector<std::vector<std::byte>> data;  // of each tensor

  void drop_key(const std::string& key) {
    std::erase_if(spec.metadata, [&](const auto& entry) { return entry.first == key; });
  }
  void set_key(const std::string& key, gguf::Value value) {
    drop_key(key);
    spec.metadata.emplace_back(key, std::move(value));
  }
  [[nodiscard]] bool has_key(const std::string& key) const {
    return std::ranges::any_of(spec.metadata, [&](const auto& entry) { return entry.first == key; });
  }
  void drop_tensor(size_t index) {
    spec.tensors.erase(spec.tensors.begin() + static_cast<int64_t>(index));
    data.erase(data.begin() + static_cast<int64_t>(index));
  }
  void add_tensor(std::string name, gguf::Format format, std::vector<uint64_t> shape) {
    uint64_t values = 1;
    for (const uint64_t dimension : shape) values *= dimension;
    data.emplace_back(gguf::bytes_of(format, values));
    spec.tensors.push_back({std::move(name), format, std::move(shape)});
  }
  // Requires the bytes to outlive the checkpoint that is read from them.
  [[nodiscard]] std::vector<std::byte> bytes() const {
    auto out = gguf::write_bytes(spec, [&](size_t index) -> Result<std::span<const std::byte>> {
      return std::span<const std::byte>(data[index]);
    });
    EXPECT_TRUE(out.ok()) << to_text(out.refusal());
    return std::move(*out);
  }
};

// A new file of a synthesized model, removed with this object.
class TemporaryModel {
 public:
  explicit TemporaryModel(const SynthSpec& spec)
      : path_(std::filesystem::temp_directory_path() / fmt::format("tilewright-{}-{}.gguf", getpid(), made++)) {
    const auto written = synthesize(spec, path_);
    EXPECT_TRUE(written.ok()) << to_text(written.refusal());
  }
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  ~TemporaryModel() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] gguf::Checkpoint open() const {
    auto checkpoint = gguf::Checkpoint::open(path_);
    EXPECT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
    return std::move(*checkpoint);
  }

 private:
  static inline int made = 0;
  std::filesystem::path path_;
};

// An architecture as part of a test's name.
inline std::string test_name(std::string_view architecture) {
  std::string out(architecture);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

inline ToyFile copy_of(const gguf::Checkpoint& checkpoint) {
  ToyFile out;
  for (const gguf::Entry& entry : checkpoint.entries()) out.spec.metadata.emplace_back(entry.key, entry.value);
  for (const gguf::TensorInfo& tensor : checkpoint.tensors()) {
    out.spec.tensors.push_back({tensor.name, tensor.format, tensor.shape});
    const auto bytes = checkpoint.bytes(tensor);
    out.data.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

inline ToyFile toy_file(std::string_view architecture, std::string shape = {}) {
  const TemporaryModel file({.architecture = std::string(architecture), .shape = std::move(shape), .format = "F32"});
  return copy_of(file.open());
}

}  // namespace tw::model
