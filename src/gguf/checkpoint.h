#pragma once

// An opened checkpoint: one GGUF file, or the files of a split one, mapped read-only.
// A file is hostile until proven otherwise: every count, length, offset and type is checked against the real size of
// the file before anything is allocated or touched, and every refusal names the file, the byte offset, the key or
// tensor, what was found and what was expected. Reading takes memory for the metadata and the tensor table, a small
// multiple of their bytes; tensors stay in the file. Copies share what was read; all functions may run concurrently.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/format.h"
#include "gguf/value.h"

namespace tw::gguf {

struct TensorInfo {
  std::string name;
  Format format = Format::F32;
  std::vector<uint64_t> shape;  // 1 to 4 dimensions, shape[0] is the row length; every one is at least 1
  uint32_t file = 0;            // index of the file of a split checkpoint
  uint64_t offset = 0;          // from the start of that file
  uint64_t bytes = 0;

  [[nodiscard]] uint64_t values() const;  // product of the shape, checked to fit when the file was read
  [[nodiscard]] uint64_t row_length() const { return shape[0]; }
  [[nodiscard]] uint64_t rows() const;       // values() / row_length()
  [[nodiscard]] uint64_t row_bytes() const;  // bytes of one row
};

struct Entry {
  std::string key;
  Value value;
  uint64_t offset = 0;  // where the key starts in the file, for messages
};

class Checkpoint {
 public:
  // Opens `path`; when its metadata says it is one of a split set, opens the others beside it.
  static Result<Checkpoint> open(const std::filesystem::path& path);
  // Reads a checkpoint that lies in memory (kept alive by the caller, and aligned as tensors are to be); `label` stands
  // for the file's name in messages. One part of a split checkpoint is refused.
  static Result<Checkpoint> parse(std::span<const std::byte> bytes, std::string label);

  [[nodiscard]] const std::string& label() const;  // the path as given, or the label
  [[nodiscard]] uint32_t version() const;
  [[nodiscard]] uint64_t alignment() const;
  [[nodiscard]] uint64_t file_bytes() const;  // all files together
  [[nodiscard]] std::span<const Entry> entries() const;
  [[nodiscard]] std::span<const TensorInfo> tensors() const;

  [[nodiscard]] const Entry* find(std::string_view key) const;
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const;
  // Missing: the refusal lists near names.
  [[nodiscard]] Result<const TensorInfo*> tensor(std::string_view name) const;
  // The tensor's bytes where they lie.
  [[nodiscard]] std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  // Tells the system that the pages of `tensor` are not needed for now; they are read again when touched.
  void forget_pages(const TensorInfo& tensor) const;
  // The same for bytes of tensors; bytes that lie in no file of the checkpoint are left alone.
  void forget_pages(std::span<const std::byte> bytes) const;

  // Metadata by key: Missing when absent (get_*), nothing when absent (find_*); Malformed, naming key, found and
  // expected type, when the type is wrong or the number does not fit. Any integer type serves where an unsigned or
  // integer is asked for if its value fits; any float type, or an integer, serves for f64.
  [[nodiscard]] Result<uint64_t> get_u64(std::string_view key) const;
  [[nodiscard]] Result<double> get_f64(std::string_view key) const;
  [[nodiscard]] Result<bool> get_bool(std::string_view key) const;
  [[nodiscard]] Result<std::string> get_string(std::string_view key) const;
  [[nodiscard]] Result<std::optional<uint64_t>> find_u64(std::string_view key) const;
  [[nodiscard]] Result<std::optional<double>> find_f64(std::string_view key) const;
  [[nodiscard]] Result<std::optional<bool>> find_bool(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string>> find_string(std::string_view key) const;
  // Arrays; a missing key gives nothing.
  [[nodiscard]] Result<std::optional<std::vector<std::string>>> find_strings(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::vector<double>>> find_f64s(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::vector<int64_t>>> find_i64s(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::vector<bool>>> find_bools(std::string_view key) const;

 private:
  struct Data;
  explicit Checkpoint(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

}  // namespace tw::gguf
