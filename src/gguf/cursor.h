#pragma once

// A place in a file that is read front to back. Nothing is touched or allocated before it is known to lie in the file.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/value_storage.h"

namespace tw::gguf {

class Cursor {
 public:
  // `label` names the file in refusals. Both must outlive the cursor.
  Cursor(std::span<const std::byte> bytes, std::string_view label) : bytes_(bytes), label_(label) {}

  [[nodiscard]] uint64_t at() const { return at_; }
  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] uint64_t remaining() const { return bytes_.size() - at_; }
  [[nodiscard]] std::string_view label() const { return label_; }

  // What is being read, for refusals: `key "general.name"`; empty for the header.
  void set_context(std::string context) { context_ = std::move(context); }

  // A refusal about the file: "LABEL: at byte OFFSET, CONTEXT: REASON".
  [[nodiscard]] Refusal refuse_at(uint64_t offset, RefusalKind kind, std::string_view reason,
                                  std::string remedy = {}) const;

  // Reads a number; `what` names it in the refusal when the file ends before it does.
  template <class T>
  Result<T> read(std::string_view what) {
    if (remaining() < sizeof(T)) return refuse_end(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  // Reads a string: its length as u64, then its bytes, which stay where they lie.
  Result<std::string_view> read_string(std::string_view what);

  // Takes `count` items of `item_bytes` each, where they lie. Requires item_bytes > 0.
  Result<std::span<const std::byte>> take(uint64_t count, uint64_t item_bytes, std::string_view what);

  // Refuses unless `count` items of at least `item_bytes` each fit in what remains; says that they were announced at
  // `offset`. Requires item_bytes > 0.
  Result<void> expect_room(uint64_t count, uint64_t item_bytes, std::string_view what, uint64_t offset) const;

 private:
  [[nodiscard]] Refusal refuse_end(std::string_view what, uint64_t needed) const;

  std::span<const std::byte> bytes_;
  std::string_view label_;
  std::string context_;
  uint64_t at_ = 0;
};

}  // namespace tw::gguf
