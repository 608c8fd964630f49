#include "gguf/file_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "gguf/conversions.h"
#include "gguf/cursor.h"
#include "gguf/metadata.h"
#include "gguf/name_index.h"
#include "gguf/names.h"

namespace tw::gguf {
namespace {

constexpr std::array kVersions = {2u, 3u};

struct OtherMagic {
  std::string_view bytes;
  std::string_view format;
};
// What is often given in place of a GGUF file.
constexpr OtherMagic kOtherMagics[] = {
    {"FUGG", "a big-endian GGUF file"},
    {"lmgg", "a GGML file, older than GGUF"},
    {"fmgg", "a GGMF file, older than GGUF"},
    {"tjgg", "a GGJT file, older than GGUF"},
    {"PK\x03\x04", "a zip archive (PyTorch saves those)"},
    {"vers", "the pointer that Git LFS leaves in place of a file"},
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{}{:02x}", text.empty() ? "" : " ", static_cast<uint8_t>(c));
  return text;
}

Result<void> read_magic(Cursor& cursor) {
  using Magic = std::array<char, kMagic.size()>;
  TW_TRY(const Magic bytes, cursor.read<Magic>("the magic"));
  const std::string_view magic(bytes.data(), bytes.size());
  if (magic == kMagic) return {};
  for (const OtherMagic& other : kOtherMagics)
    if (magic == other.bytes)
      return cursor.refuse_at(0, RefusalKind::Unsupported,
                              fmt::format("found {}, expected a little-endian GGUF file", other.format));
  return cursor.refuse_at(0, RefusalKind::Malformed,
                          fmt::format("found the bytes {}, expected {} (\"GGUF\")", hex(magic), hex(kMagic)));
}

Result<uint32_t> read_version(Cursor& cursor) {
  const uint64_t start = cursor.at();
  TW_TRY(const uint32_t version, cursor.read<uint32_t>("the version"));
  if (std::ranges::find(kVersions, version) != kVersions.end()) return version;
  if ((version & 0xffffu) == 0 && version != 0)  // no version is that high: its bytes come the other way round
    return cursor.refuse_at(start, RefusalKind::Unsupported,
                            fmt::format("found a big-endian GGUF file (version {}), expected a little-endian one",
                                        __builtin_bswap32(version)),
                            "Convert the file to little-endian");
  return cursor.refuse_at(start, RefusalKind::Unsupported,
                          fmt::format("found GGUF version {}, expected 2 or 3", version),
                          version == 1 ? "Convert the file again with current tools" : "");
}

// Refuses two items of one name; `what` they are, `name(item)` and where they stand, `at(item)`.
template <class Item, class Name, class At>
Result<void> check_unique(const Cursor& cursor, const std::vector<Item>& items, std::string_view what, Name name,
                          At at) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(name(item));
  const auto duplicate = NameIndex(names).duplicate();
  if (!duplicate) return {};
  const auto [second, first] = *duplicate;
  return cursor.refuse_at(at(items[second]), RefusalKind::Malformed,
                          fmt::format("found {} {} a second time, expected it once (it is at byte {})", what,
                                      quote(names[second]), at(items[first])));
}

Result<void> check_unique_keys(const Cursor& cursor, const std::vector<Entry>& entries) {
  return check_unique(
      cursor, entries, "key", [](const Entry& entry) -> std::string_view { return entry.key; },
      [](const Entry& entry) { return entry.offset; });
}

Result<void> check_unique_names(const Cursor& cursor, const std::vector<TensorRecord>& tensors) {
  return check_unique(
      cursor, tensors, "tensor", [](const TensorRecord& tensor) -> std::string_view { return tensor.info.name; },
      [](const TensorRecord& tensor) { return tensor.at; });
}

Result<uint64_t> read_alignment(const Cursor& cursor, const std::vector<Entry>& entries) {
  const auto entry = std::ranges::find(entries, kAlignmentKey, &Entry::key);
  if (entry == entries.end()) return kDefaultAlignment;
  TW_TRY(const uint64_t alignment, to_u64(*entry, cursor.label()));
  if (!is_alignment(alignment))
    return cursor.refuse_at(entry->offset, RefusalKind::Malformed,
                            fmt::format("{} is {}, expected a power of two from {} to {}", kAlignmentKey, alignment,
                                        kMinAlignment, kMaxAlignment));
  return alignment;
}

}  // namespace

Result<ParsedFile> parse_file(std::span<const std::byte> bytes, std::string_view label) {
  Cursor cursor(bytes, label);
  ParsedFile file;
  TW_TRY_VOID(read_magic(cursor));
  TW_TRY(file.version, read_version(cursor));
  const uint64_t counts = cursor.at();
  TW_TRY(const uint64_t tensor_count, cursor.read<uint64_t>("the number of tensors"));
  TW_TRY(const uint64_t entry_count, cursor.read<uint64_t>("the number of keys"));
  TW_TRY_VOID(cursor.expect_room(tensor_count, kMinTensorRecordBytes, "tensors", counts));
  TW_TRY_VOID(cursor.expect_room(entry_count, kMinEntryBytes, "keys", counts + sizeof(uint64_t)));
  TW_TRY(file.entries, read_metadata(cursor, entry_count));
  TW_TRY_VOID(check_unique_keys(cursor, file.entries));
  TW_TRY(file.alignment, read_alignment(cursor, file.entries));
  TW_TRY_VOID(cursor.expect_room(tensor_count, kMinTensorRecordBytes, "tensors", counts));
  TW_TRY(file.tensors, read_tensor_table(cursor, tensor_count));
  TW_TRY_VOID(check_unique_names(cursor, file.tensors));
  TW_TRY_VOID(place_tensors(cursor, file.alignment, file.tensors));
  return file;
}

}  // namespace tw::gguf
