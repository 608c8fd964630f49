#include "gguf/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <system_error>
#include <utility>

#include "gguf/conversions.h"
#include "gguf/file_parser.h"
#include "gguf/mapping.h"
#include "gguf/name_index.h"
#include "gguf/names.h"
#include "gguf/split.h"

namespace tw::gguf {
namespace {

// A file that is read and checked for itself.
struct Part {
  std::string label;
  Mapping mapping;                   // empty when the bytes are the caller's
  std::span<const std::byte> bytes;  // of the mapping, or the caller's
  ParsedFile parsed;
  std::optional<SplitPart> split;
};

Result<Part> parse_part(std::string label, Mapping mapping, std::span<const std::byte> bytes) {
  Part part{std::move(label), std::move(mapping), bytes, {}, {}};
  TW_TRY(part.parsed, parse_file(part.bytes, part.label));
  TW_TRY(part.split, split_part(part.parsed.entries, part.label));
  return part;
}

Result<Part> open_part(const std::filesystem::path& path) {
  TW_TRY(Mapping mapping, Mapping::open(path));
  const std::span<const std::byte> bytes = mapping.bytes();
  return parse_part(path.string(), std::move(mapping), bytes);
}

// A part beside the one at `opened`, which says what it must be.
Result<Part> open_sibling(const std::filesystem::path& opened, const SplitPart& first, uint64_t number) {
  TW_TRY(const std::filesystem::path path, part_path(opened, first, number));
  Result<Part> part = open_part(path);
  std::error_code unknown;
  if (!part && !std::filesystem::exists(path, unknown))
    return refuse(RefusalKind::Missing, path.string(),
                  fmt::format("the file is not there, expected part {} of {} beside {}", number + 1, first.count,
                              opened.string()));
  if (!part) return part;
  const SplitPart expected{number, first.count, first.tensors};
  if (part->split == expected) return part;
  const SplitPart found = part->split.value_or(SplitPart{});
  return refuse(RefusalKind::Conflict, path.string(),
                fmt::format("the file says it is part {} of {} with {} tensors in all, expected part {} of {} with {} "
                            "as {} says",
                            found.number + 1, found.count, found.tensors, number + 1, first.count, first.tensors,
                            opened.string()));
}

Result<std::vector<Part>> open_set(const std::filesystem::path& path) {
  TW_TRY(Part opened, open_part(path));
  const SplitPart split = opened.split.value_or(SplitPart{});
  std::vector<Part> parts;  // not reserved: the count is only a claim until the parts are there
  for (uint64_t number = 0; number < split.count; ++number) {
    if (number == split.number) continue;
    TW_TRY(Part part, open_sibling(path, split, number));
    parts.push_back(std::move(part));
  }
  parts.insert(parts.begin() + static_cast<ptrdiff_t>(split.number), std::move(opened));
  return parts;
}

template <class Item>
std::vector<std::string_view> names_of(const std::vector<Item>& items, std::string Item::*name) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(item.*name);
  return names;
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& names) {
  const std::vector<std::string_view> near = near_names(wanted, names);
  return near.empty() ? "" : fmt::format("Names near to it: {}", fmt::join(near, ", "));
}

}  // namespace

struct Checkpoint::Data {
  struct File {
    std::string label;
    Mapping mapping;
    std::span<const std::byte> bytes;
  };

  std::string label;
  uint32_t version = 0;
  uint64_t alignment = 0;
  uint64_t file_bytes = 0;
  std::vector<File> files;
  std::vector<Entry> entries;  // of the first file
  std::vector<TensorInfo> tensors;
  NameIndex keys;
  NameIndex names;

  static Result<Checkpoint> assemble(std::string label, std::vector<Part> parts);
  Result<void> check_tensors_over_parts(const std::optional<SplitPart>& split) const;

  template <class T>
  Result<T> get(std::string_view key, Result<T> (*convert)(const Entry&, std::string_view)) const {
    if (const auto at = keys.find(key)) return convert(entries[*at], files.front().label);
    return refuse(RefusalKind::Missing, key, fmt::format("{} has no such key", label),
                  did_you_mean(key, names_of(entries, &Entry::key)));
  }

  template <class T>
  Result<std::optional<T>> look_up(std::string_view key, Result<T> (*convert)(const Entry&, std::string_view)) const {
    const auto at = keys.find(key);
    if (!at) return std::optional<T>();
    TW_TRY(T value, convert(entries[*at], files.front().label));
    return std::optional<T>(std::move(value));
  }
};

Result<Checkpoint> Checkpoint::Data::assemble(std::string label, std::vector<Part> parts) {
  auto data = std::make_shared<Data>();
  data->label = std::move(label);
  data->version = parts.front().parsed.version;
  data->alignment = parts.front().parsed.alignment;
  data->entries = std::move(parts.front().parsed.entries);
  for (Part& part : parts) {
    for (TensorRecord& record : part.parsed.tensors) {
      record.info.file = static_cast<uint32_t>(data->files.size());
      data->tensors.push_back(std::move(record.info));
    }
    data->file_bytes += part.bytes.size();
    data->files.push_back({std::move(part.label), std::move(part.mapping), part.bytes});
  }
  data->keys = NameIndex(names_of(data->entries, &Entry::key));
  data->names = NameIndex(names_of(data->tensors, &TensorInfo::name));
  TW_TRY_VOID(data->check_tensors_over_parts(parts.front().split));
  return Checkpoint(std::move(data));
}

Result<void> Checkpoint::Data::check_tensors_over_parts(const std::optional<SplitPart>& split) const {
  if (const auto duplicate = names.duplicate()) {
    const TensorInfo& second = tensors[duplicate->first];
    const TensorInfo& first = tensors[duplicate->second];
    return refuse(RefusalKind::Malformed, files[second.file].label,
                  fmt::format("found tensor {} (data at byte {}), expected it once ({} has it, data at byte {})",
                              quote(second.name), second.offset, files[first.file].label, first.offset));
  }
  if (split && split->tensors != tensors.size())
    return refuse(RefusalKind::Malformed, label,
                  fmt::format("found {} tensors in {} parts, expected {} as split.tensors.count says", tensors.size(),
                              split->count, split->tensors));
  return {};
}

Checkpoint::Checkpoint(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  TW_TRY(std::vector<Part> parts, open_set(path));
  return Data::assemble(path.string(), std::move(parts));
}

Result<Checkpoint> Checkpoint::parse(std::span<const std::byte> bytes, std::string label) {
  TW_TRY(Part part, parse_part(label, Mapping(), bytes));
  if (part.split && part.split->count > 1)
    return refuse(RefusalKind::Unsupported, label,
                  fmt::format("found part {} of {} of a split checkpoint in memory, expected a whole one",
                              part.split->number + 1, part.split->count),
                  "Open it by its path, with the other parts beside it");
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  return Data::assemble(std::move(label), std::move(parts));
}

const std::string& Checkpoint::label() const { return data_->label; }
uint32_t Checkpoint::version() const { return data_->version; }
uint64_t Checkpoint::alignment() const { return data_->alignment; }
uint64_t Checkpoint::file_bytes() const { return data_->file_bytes; }
std::span<const Entry> Checkpoint::entries() const { return data_->entries; }
std::span<const TensorInfo> Checkpoint::tensors() const { return data_->tensors; }

const Entry* Checkpoint::find(std::string_view key) const {
  const auto at = data_->keys.find(key);
  return at ? &data_->entries[*at] : nullptr;
}

const TensorInfo* Checkpoint::find_tensor(std::string_view name) const {
  const auto at = data_->names.find(name);
  return at ? &data_->tensors[*at] : nullptr;
}

Result<const TensorInfo*> Checkpoint::tensor(std::string_view name) const {
  if (const TensorInfo* found = find_tensor(name)) return found;
  return refuse(RefusalKind::Missing, name,
                fmt::format("{} has no such tensor among its {}", data_->label, data_->tensors.size()),
                did_you_mean(name, names_of(data_->tensors, &TensorInfo::name)));
}

std::span<const std::byte> Checkpoint::bytes(const TensorInfo& tensor) const {
  TW_CHECK(tensor.file < data_->files.size(), "tensor {} is of another checkpoint: file {}", tensor.name, tensor.file);
  const std::span<const std::byte> file = data_->files[tensor.file].bytes;
  TW_CHECK(tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset,
           "tensor {} is of another checkpoint: bytes {}+{} of {}", tensor.name, tensor.offset, tensor.bytes,
           file.size());
  return file.subspan(tensor.offset, tensor.bytes);
}

void Checkpoint::forget_pages(const TensorInfo& tensor) const { forget_pages(bytes(tensor)); }

void Checkpoint::forget_pages(std::span<const std::byte> bytes) const {
  for (const Data::File& file : data_->files) {
    const std::span<const std::byte> mapped = file.mapping.bytes();
    const bool inside = std::less_equal<>()(mapped.data(), bytes.data()) &&
                        std::less_equal<>()(bytes.data() + bytes.size(), mapped.data() + mapped.size());
    if (!mapped.empty() && inside)
      return file.mapping.forget(static_cast<uint64_t>(bytes.data() - mapped.data()), bytes.size());
  }
}

Result<uint64_t> Checkpoint::get_u64(std::string_view key) const { return data_->get(key, to_u64); }
Result<double> Checkpoint::get_f64(std::string_view key) const { return data_->get(key, to_f64); }
Result<bool> Checkpoint::get_bool(std::string_view key) const { return data_->get(key, to_bool); }
Result<std::string> Checkpoint::get_string(std::string_view key) const { return data_->get(key, to_string); }

Result<std::optional<uint64_t>> Checkpoint::find_u64(std::string_view key) const { return data_->look_up(key, to_u64); }
Result<std::optional<double>> Checkpoint::find_f64(std::string_view key) const { return data_->look_up(key, to_f64); }
Result<std::optional<bool>> Checkpoint::find_bool(std::string_view key) const { return data_->look_up(key, to_bool); }
Result<std::optional<std::string>> Checkpoint::find_string(std::string_view key) const {
  return data_->look_up(key, to_string);
}
Result<std::optional<std::vector<std::string>>> Checkpoint::find_strings(std::string_view key) const {
  return data_->look_up(key, to_strings);
}
Result<std::optional<std::vector<double>>> Checkpoint::find_f64s(std::string_view key) const {
  return data_->look_up(key, to_f64s);
}
Result<std::optional<std::vector<int64_t>>> Checkpoint::find_i64s(std::string_view key) const {
  return data_->look_up(key, to_i64s);
}
Result<std::optional<std::vector<bool>>> Checkpoint::find_bools(std::string_view key) const {
  return data_->look_up(key, to_bools);
}

}  // namespace tw::gguf
