// Any bytes are refused or read; what is read can be walked whole, and written and read again to the same bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gguf/checkpoint.h"
#include "gguf/writer.h"

namespace {

using namespace tw::gguf;

// What the compiler may not leave out.
volatile unsigned touched = 0;
void touch(std::byte byte) { touched = touched + std::to_integer<unsigned>(byte); }

void walk_entry(const Checkpoint& checkpoint, const Entry& entry) {
  TW_CHECK(checkpoint.find(entry.key) == &entry, "key {} is not found", entry.key);
  (void)describe(entry.value);
  const std::string& key = entry.key;
  const int served = int{checkpoint.get_u64(key).ok()} + checkpoint.get_f64(key).ok() + checkpoint.get_bool(key).ok() +
                     checkpoint.get_string(key).ok() + checkpoint.find_strings(key).ok() +
                     checkpoint.find_f64s(key).ok() + checkpoint.find_i64s(key).ok() + checkpoint.find_bools(key).ok();
  TW_CHECK(served <= 2, "key {} is served as {} types", key, served);  // an integer may be a double too
  TW_CHECK(!checkpoint.get_u64(key + "?").ok() || checkpoint.find(key + "?"), "key {}? is not there", key);
}

void walk_tensor(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  TW_CHECK(checkpoint.find_tensor(tensor.name) == &tensor, "tensor {} is not found", tensor.name);
  const std::span<const std::byte> bytes = checkpoint.bytes(tensor);
  TW_CHECK(bytes.size() == tensor.rows() * tensor.row_bytes(), "tensor {} has {} bytes", tensor.name, bytes.size());
  touch(bytes.front());
  touch(bytes.back());
  checkpoint.forget_pages(tensor);
  (void)checkpoint.tensor(tensor.name + "x").ok();
}

std::vector<std::byte> written(const Checkpoint& checkpoint) {
  FileSpec spec;
  for (const Entry& entry : checkpoint.entries()) spec.metadata.emplace_back(entry.key, entry.value);
  for (const TensorInfo& tensor : checkpoint.tensors())
    spec.tensors.push_back({tensor.name, tensor.format, tensor.shape});
  spec.alignment = checkpoint.alignment();
  return write_bytes(spec,
                     [&](size_t index) -> tw::Result<std::span<const std::byte>> {
                       return checkpoint.bytes(checkpoint.tensors()[index]);
                     })
      .value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto checkpoint = Checkpoint::parse(std::as_bytes(std::span(data, size)), "input");
  if (!checkpoint) {
    TW_CHECK(!checkpoint.refusal().reason.empty(), "a refusal gives its reason");
    return 0;
  }
  for (const Entry& entry : checkpoint->entries()) walk_entry(*checkpoint, entry);
  for (const TensorInfo& tensor : checkpoint->tensors()) walk_tensor(*checkpoint, tensor);
  const std::vector<std::byte> once = written(*checkpoint);
  const auto again = Checkpoint::parse(once, "written");
  TW_CHECK(again.ok(), "what was written is refused: {}", tw::to_text(again.refusal()));
  TW_CHECK(written(*again) == once, "what was read again is written as other bytes");
  return 0;
}
