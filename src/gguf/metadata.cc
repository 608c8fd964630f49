#include "gguf/metadata.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "gguf/names.h"
#include "gguf/value_storage.h"

namespace tw::gguf {
namespace {

constexpr uint64_t kMinStringBytes = 8;  // an empty one: its length

Result<ValueType> read_type(Cursor& cursor, std::string_view what) {
  const uint64_t start = cursor.at();
  TW_TRY(const uint32_t id, cursor.read<uint32_t>(what));
  const std::optional<ValueType> type = value_type_of_id(id);
  if (!type)
    return cursor.refuse_at(start, RefusalKind::Malformed,
                            fmt::format("{} is {}, expected 0 (u8) to 12 (f64)", what, id));
  return *type;
}

Result<bool> to_bool(const Cursor& cursor, uint64_t offset, uint8_t byte) {
  if (byte > 1)
    return cursor.refuse_at(offset, RefusalKind::Malformed, fmt::format("a bool is {}, expected 0 or 1", byte));
  return byte == 1;
}

Result<Scalar> read_scalar(Cursor& cursor, ValueType type) {
  if (type == ValueType::String) {
    TW_TRY(const std::string_view text, cursor.read_string("a string"));
    return Scalar(std::string(text));
  }
  if (type == ValueType::Bool) {
    const uint64_t start = cursor.at();
    TW_TRY(const uint8_t byte, cursor.read<uint8_t>("a bool"));
    TW_TRY(const bool value, to_bool(cursor, start, byte));
    return Scalar(value);
  }
  return with_stored_type(type, [&]<class Stored>(Stored) -> Result<Scalar> {
    TW_TRY(const Stored value, cursor.read<Stored>("a number"));
    return Scalar(static_cast<Kept<Stored>>(value));
  });
}

Result<std::vector<std::string>> read_strings(Cursor& cursor, uint64_t count, uint64_t start) {
  TW_TRY_VOID(cursor.expect_room(count, kMinStringBytes, "strings", start));
  std::vector<std::string> strings;
  strings.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TW_TRY(const std::string_view text, cursor.read_string("a string of the array"));
    strings.emplace_back(text);
  }
  return strings;
}

Result<std::vector<bool>> read_bools(Cursor& cursor, uint64_t count) {
  const uint64_t start = cursor.at();
  TW_TRY(const auto bytes, cursor.take(count, 1, "bools"));
  std::vector<bool> bools(count);
  for (uint64_t i = 0; i < count; ++i) {
    TW_TRY(bools[i], to_bool(cursor, start + i, std::to_integer<uint8_t>(bytes[i])));
  }
  return bools;
}

template <class Stored>
Result<std::vector<Kept<Stored>>> read_numbers(Cursor& cursor, uint64_t count, ValueType type) {
  TW_TRY(const auto bytes, cursor.take(count, sizeof(Stored), fmt::format("numbers ({})", name(type))));
  std::vector<Kept<Stored>> numbers;
  numbers.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    Stored number;
    std::memcpy(&number, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    numbers.push_back(static_cast<Kept<Stored>>(number));
  }
  return numbers;
}

Result<Array> read_array(Cursor& cursor) {
  const uint64_t start = cursor.at();
  TW_TRY(const ValueType element, read_type(cursor, "the type of the array's items"));
  if (element == ValueType::Array)
    return cursor.refuse_at(start, RefusalKind::Unsupported,
                            "found an array of arrays, expected items of one scalar type");
  const uint64_t counted = cursor.at();
  TW_TRY(const uint64_t count, cursor.read<uint64_t>("the length of an array"));
  if (element == ValueType::String) {
    TW_TRY(auto strings, read_strings(cursor, count, counted));
    return Array{element, std::move(strings)};
  }
  if (element == ValueType::Bool) {
    TW_TRY(auto bools, read_bools(cursor, count));
    return Array{element, std::move(bools)};
  }
  return with_stored_type(element, [&]<class Stored>(Stored) -> Result<Array> {
    TW_TRY(auto numbers, read_numbers<Stored>(cursor, count, element));
    return Array{element, std::move(numbers)};
  });
}

Result<Entry> read_entry(Cursor& cursor) {
  Entry entry;
  entry.offset = cursor.at();
  cursor.set_context("");
  TW_TRY(const std::string_view key, cursor.read_string("a key"));
  cursor.set_context(fmt::format("key {}", quote(key)));
  if (auto fault = name_fault(key, kMaxKeyBytes))
    return cursor.refuse_at(entry.offset, RefusalKind::Malformed, fmt::format("the key {}", *fault));
  entry.key = key;
  TW_TRY(entry.value.type, read_type(cursor, "the type of the value"));
  if (entry.value.type == ValueType::Array) {
    TW_TRY(entry.value.data, read_array(cursor));
  } else {
    TW_TRY(entry.value.data, read_scalar(cursor, entry.value.type));
  }
  return entry;
}

}  // namespace

Result<std::vector<Entry>> read_metadata(Cursor& cursor, uint64_t count) {
  std::vector<Entry> entries;
  entries.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TW_TRY(Entry entry, read_entry(cursor));
    entries.push_back(std::move(entry));
  }
  cursor.set_context("");
  return entries;
}

}  // namespace tw::gguf
