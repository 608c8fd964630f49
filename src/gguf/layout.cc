#include "gguf/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "base/round.h"
#include "gguf/conversions.h"
#include "gguf/file_parser.h"
#include "gguf/name_index.h"
#include "gguf/names.h"
#include "gguf/shape.h"
#include "gguf/value_storage.h"

namespace tw::gguf {
namespace {

constexpr uint32_t kVersion = 3;

class Bytes {
 public:
  template <class T>
  void put(T value) {
    append(&value, sizeof(T));
  }
  void put_text(std::string_view text) { append(text.data(), text.size()); }
  void put_string(std::string_view text) {
    put<uint64_t>(text.size());
    put_text(text);
  }
  void pad(uint64_t alignment) { bytes_.resize(round_up(bytes_.size(), alignment)); }
  std::vector<std::byte> release() && { return std::move(bytes_); }

 private:
  void append(const void* start, size_t count) {
    const size_t end = bytes_.size();
    bytes_.resize(end + count);
    if (count > 0) std::memcpy(bytes_.data() + end, start, count);
  }
  std::vector<std::byte> bytes_;
};

Refusal wrong_value(std::string_view key, std::string reason) {
  return refuse(RefusalKind::Malformed, key, std::move(reason));
}

template <class Stored>
bool fits(Kept<Stored> value) {
  if constexpr (std::is_same_v<Stored, float>)
    return !std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max();
  else if constexpr (std::is_floating_point_v<Stored>)
    return true;
  else
    return std::in_range<Stored>(value);
}

// Whether a value of that type, or an array of items of that type, is held as Held.
template <class Held>
bool is_held_as(ValueType type) {
  if constexpr (std::is_same_v<Held, std::string>)
    return type == ValueType::String;
  else if constexpr (std::is_same_v<Held, bool>)
    return type == ValueType::Bool;
  else
    return is_number(type) &&
           with_stored_type(type, []<class Stored>(Stored) { return std::is_same_v<Kept<Stored>, Held>; });
}

// A value, or item of an array. Requires is_held_as<Held>(type).
template <class Held>
Result<void> put_item(Bytes& out, std::string_view key, ValueType type, const Held& held) {
  if constexpr (std::is_same_v<Held, std::string>) {
    out.put_string(held);
  } else if constexpr (std::is_same_v<Held, bool>) {
    out.put<uint8_t>(held ? 1 : 0);
  } else {
    return with_stored_type(type, [&]<class Stored>(Stored) -> Result<void> {
      if constexpr (std::is_same_v<Kept<Stored>, Held>) {
        if (!fits<Stored>(held)) return wrong_value(key, fmt::format("{} does not fit the type {}", held, name(type)));
        out.put(static_cast<Stored>(held));
      }
      return {};
    });
  }
  return {};
}

Result<void> put_data(Bytes& out, std::string_view key, ValueType type, const Scalar& scalar) {
  return std::visit(
      [&]<class Held>(const Held& held) -> Result<void> {
        if (!is_held_as<Held>(type))
          return wrong_value(key, fmt::format("the value is not held as its type {} asks for", name(type)));
        return put_item(out, key, type, held);
      },
      scalar);
}

Result<void> put_data(Bytes& out, std::string_view key, ValueType type, const Array& array) {
  if (type != ValueType::Array)
    return wrong_value(key, fmt::format("an array is held by a value of type {}", name(type)));
  out.put(static_cast<uint32_t>(array.element));
  out.put<uint64_t>(array.size());
  return std::visit(
      [&]<class Item>(const std::vector<Item>& items) -> Result<void> {
        if (!is_held_as<Item>(array.element))
          return wrong_value(key, fmt::format("the items are not held as their type {} asks for", name(array.element)));
        for (size_t i = 0; i < items.size(); ++i) TW_TRY_VOID(put_item<Item>(out, key, array.element, items[i]));
        return {};
      },
      array.items);
}

Result<void> put_entry(Bytes& out, std::string_view key, const Value& value) {
  if (auto fault = name_fault(key, kMaxKeyBytes))
    return refuse(RefusalKind::Malformed, "metadata", fmt::format("the key {} {}", quote(key), *fault));
  out.put_string(key);
  out.put(static_cast<uint32_t>(value.type));
  return std::visit([&](const auto& data) { return put_data(out, key, value.type, data); }, value.data);
}

Result<void> check_distinct(const std::vector<std::string_view>& names, std::string_view what) {
  const auto duplicate = NameIndex(names).duplicate();
  if (!duplicate) return {};
  const auto [second, first] = *duplicate;
  return refuse(RefusalKind::Conflict, names[second],
                fmt::format("{} {} has the name of {} {}, expected each name once", what, second, what, first));
}

// The entry to add for an alignment that the metadata leaves out.
Result<std::optional<Value>> alignment_entry(const FileSpec& spec) {
  if (!is_alignment(spec.alignment))
    return refuse(RefusalKind::Malformed, kAlignmentKey,
                  fmt::format("the alignment is {}, expected a power of two from {} to {}", spec.alignment,
                              kMinAlignment, kMaxAlignment));
  const auto given = std::ranges::find(spec.metadata, kAlignmentKey, [](const auto& entry) { return entry.first; });
  if (given == spec.metadata.end()) {
    if (spec.alignment == kDefaultAlignment) return std::optional<Value>();
    return std::optional(value_u32(static_cast<uint32_t>(spec.alignment)));
  }
  // Any integer serves, as it does for the reader.
  const Result<uint64_t> value = to_u64({given->first, given->second}, "the metadata");
  if (value && *value == spec.alignment) return std::optional<Value>();
  return refuse(RefusalKind::Conflict, kAlignmentKey,
                fmt::format("the metadata has {} for it, expected the alignment of the file, {}",
                            value ? fmt::format("{}", *value) : describe(given->second), spec.alignment));
}

Result<void> check_names(const FileSpec& spec) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : spec.metadata) keys.push_back(key);
  TW_TRY_VOID(check_distinct(keys, "key"));
  std::vector<std::string_view> tensors;
  for (const TensorSpec& tensor : spec.tensors) tensors.push_back(tensor.name);
  return check_distinct(tensors, "tensor");
}

// One tensor's record; `offset` is from the start of the tensor data. Gives the tensor's bytes.
Result<uint64_t> put_tensor(Bytes& out, const TensorSpec& tensor, uint64_t offset) {
  if (auto fault = name_fault(tensor.name, kMaxTensorNameBytes))
    return refuse(RefusalKind::Malformed, "tensors", fmt::format("the name {} {}", quote(tensor.name), *fault));
  const Result<uint64_t> bytes = tensor_bytes(tensor.format, tensor.shape);
  if (!bytes) return refuse(bytes.refusal().kind, tensor.name, bytes.refusal().reason);
  out.put_string(tensor.name);
  out.put(static_cast<uint32_t>(tensor.shape.size()));
  for (uint64_t extent : tensor.shape) out.put(extent);
  out.put(info(tensor.format).id);
  out.put(offset);
  return *bytes;
}

}  // namespace

Result<Layout> lay_out(const FileSpec& spec) {
  TW_TRY(const std::optional<Value> alignment, alignment_entry(spec));
  TW_TRY_VOID(check_names(spec));
  Bytes head;
  head.put_text(kMagic);
  head.put(kVersion);
  head.put<uint64_t>(spec.tensors.size());
  head.put<uint64_t>(spec.metadata.size() + (alignment ? 1 : 0));
  for (const auto& [key, value] : spec.metadata) TW_TRY_VOID(put_entry(head, key, value));
  if (alignment) TW_TRY_VOID(put_entry(head, kAlignmentKey, *alignment));
  Layout layout;
  layout.alignment = spec.alignment;
  uint64_t offset = 0;
  for (const TensorSpec& tensor : spec.tensors) {
    TW_TRY(const uint64_t bytes, put_tensor(head, tensor, offset));
    layout.tensor_bytes.push_back(bytes);
    const auto end = checked_add(offset, bytes);
    const auto next = end ? checked_round_up(*end, spec.alignment) : std::nullopt;
    if (!next)
      return refuse(RefusalKind::TooLarge, tensor.name, "the tensors up to this one need more than 2^64 bytes");
    offset = *next;
  }
  head.pad(spec.alignment);
  layout.head = std::move(head).release();
  return layout;
}

}  // namespace tw::gguf
