#include "gguf/tensor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/checked.h"
#include "gguf/names.h"
#include "gguf/shape.h"

namespace tw::gguf {
namespace {

std::string context_of(std::string_view tensor) { return fmt::format("tensor {}", quote(tensor)); }

Result<std::vector<uint64_t>> read_shape(Cursor& cursor) {
  const uint64_t start = cursor.at();
  TW_TRY(const uint32_t dimensions, cursor.read<uint32_t>("the number of dimensions"));
  if (dimensions == 0 || dimensions > kMaxDimensions)
    return cursor.refuse_at(start, RefusalKind::Malformed,
                            fmt::format("the tensor has {} dimensions, expected 1 to {}", dimensions, kMaxDimensions));
  std::vector<uint64_t> shape(dimensions);
  for (uint64_t& extent : shape) {
    TW_TRY(extent, cursor.read<uint64_t>("a dimension"));
  }
  return shape;
}

Result<Format> read_format(Cursor& cursor) {
  const uint64_t start = cursor.at();
  TW_TRY(const uint32_t id, cursor.read<uint32_t>("the type of the tensor"));
  const std::optional<Format> format = format_of_id(id);
  if (!format)
    return cursor.refuse_at(start, RefusalKind::Unsupported,
                            fmt::format("the tensor's type is {}, expected the number of a known format (0, F32, to "
                                        "{}, {})",
                                        id, info(Format::NVFP4).id, name(Format::NVFP4)),
                            "Convert the tensor to a known format");
  return *format;
}

Result<TensorRecord> read_record(Cursor& cursor) {
  TensorRecord record;
  record.at = cursor.at();
  cursor.set_context("");
  TW_TRY(const std::string_view name, cursor.read_string("a tensor's name"));
  cursor.set_context(context_of(name));
  if (auto fault = name_fault(name, kMaxTensorNameBytes))
    return cursor.refuse_at(record.at, RefusalKind::Malformed, fmt::format("the name {}", *fault));
  record.info.name = name;
  const uint64_t shape_at = cursor.at();
  TW_TRY(record.info.shape, read_shape(cursor));
  TW_TRY(record.info.format, read_format(cursor));
  const Result<uint64_t> bytes = tensor_bytes(record.info.format, record.info.shape);
  if (!bytes) return cursor.refuse_at(shape_at, bytes.refusal().kind, bytes.refusal().reason);
  record.info.bytes = *bytes;
  TW_TRY(record.info.offset, cursor.read<uint64_t>("the offset of the tensor"));
  return record;
}

Result<void> place_tensor(Cursor& cursor, uint64_t data_start, uint64_t alignment, TensorRecord& record) {
  TensorInfo& tensor = record.info;
  cursor.set_context(context_of(tensor.name));
  if (tensor.offset % alignment != 0)
    return cursor.refuse_at(
        record.at, RefusalKind::Malformed,
        fmt::format("the tensor's offset is {}, expected a multiple of the alignment {}", tensor.offset, alignment));
  const auto start = checked_add(data_start, tensor.offset);
  const auto end = start ? checked_add(*start, tensor.bytes) : std::nullopt;
  if (!end || *end > cursor.size())
    return cursor.refuse_at(record.at, RefusalKind::Malformed,
                            fmt::format("the tensor's {} bytes start {} bytes into the tensor data (which starts at "
                                        "byte {}), the file has {} bytes in all",
                                        tensor.bytes, tensor.offset, data_start, cursor.size()),
                            "The file may be an incomplete download");
  tensor.offset = *start;
  return {};
}

Result<void> check_disjoint(Cursor& cursor, const std::vector<TensorRecord>& records) {
  std::vector<size_t> order(records.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return records[i].info.offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorRecord& before = records[order[i - 1]];
    const TensorRecord& tensor = records[order[i]];
    const uint64_t end = before.info.offset + before.info.bytes;  // checked to fit by place_tensor
    if (tensor.info.offset >= end) continue;
    cursor.set_context(context_of(tensor.info.name));
    return cursor.refuse_at(tensor.at, RefusalKind::Malformed,
                            fmt::format("the tensor starts at byte {}, expected it not to overlap tensor {} (bytes {} "
                                        "to {})",
                                        tensor.info.offset, quote(before.info.name), before.info.offset, end));
  }
  return {};
}

}  // namespace

Result<std::vector<TensorRecord>> read_tensor_table(Cursor& cursor, uint64_t count) {
  std::vector<TensorRecord> records;
  records.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TW_TRY(TensorRecord record, read_record(cursor));
    records.push_back(std::move(record));
  }
  cursor.set_context("");
  return records;
}

Result<void> place_tensors(Cursor& cursor, uint64_t alignment, std::vector<TensorRecord>& records) {
  const uint64_t table_end = cursor.at();
  const auto data_start = checked_round_up(table_end, alignment);
  TW_CHECK(data_start.has_value(), "the end of the table, {}, lies in the file", table_end);
  for (TensorRecord& record : records) TW_TRY_VOID(place_tensor(cursor, *data_start, alignment, record));
  TW_TRY_VOID(check_disjoint(cursor, records));
  cursor.set_context("");
  return {};
}

}  // namespace tw::gguf
