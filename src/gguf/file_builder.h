#pragma once

// For tests and seeds: the bytes of a GGUF file, field by field, right or wrong.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/format.h"
#include "gguf/value.h"

namespace tw::gguf {

class FileBuilder {
 public:
  FileBuilder() = default;
  // The header of a file with those counts.
  FileBuilder(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    raw("GGUF").number(version).number(tensors).number(keys);
  }

  template <class T>
  FileBuilder& number(T value) {
    return raw({reinterpret_cast<const char*>(&value), sizeof(T)});
  }
  FileBuilder& raw(std::string_view text) {
    const size_t end = bytes_.size();
    bytes_.resize(end + text.size());
    if (!text.empty()) std::memcpy(bytes_.data() + end, text.data(), text.size());
    return *this;
  }
  FileBuilder& text(std::string_view value) { return number<uint64_t>(value.size()).raw(value); }
  FileBuilder& zeros(size_t count) { return raw(std::string(count, '\0')); }
  FileBuilder& pad(size_t alignment) { return zeros((alignment - bytes_.size() % alignment) % alignment); }

  FileBuilder& type(ValueType value) { return number(static_cast<uint32_t>(value)); }
  FileBuilder& key(std::string_view name, ValueType value) { return text(name).type(value); }
  FileBuilder& u32(std::string_view name, uint32_t value) { return key(name, ValueType::U32).number(value); }
  FileBuilder& string(std::string_view name, std::string_view value) {
    return key(name, ValueType::String).text(value);
  }
  // Up to the items.
  FileBuilder& array(std::string_view name, ValueType item, uint64_t count) {
    return key(name, ValueType::Array).type(item).number(count);
  }
  FileBuilder& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t format_id, uint64_t offset) {
    text(name).number(static_cast<uint32_t>(shape.size()));
    for (uint64_t extent : shape) number(extent);
    return number(format_id).number(offset);
  }
  FileBuilder& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint64_t offset) {
    return tensor(name, shape, info(Format::F32).id, offset);
  }

  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace tw::gguf
