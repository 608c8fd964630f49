#include "gguf/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.h"
#include "gguf/checkpoint.h"

namespace tw::gguf {
namespace {

constexpr uint64_t kMaxBytes = static_cast<uint64_t>(INT64_MAX);  // offsets within a tensor fit a signed number

Refusal shape_refusal(std::string reason) { return refuse(RefusalKind::Malformed, "", std::move(reason)); }

}  // namespace

Result<uint64_t> tensor_bytes(Format format, std::span<const uint64_t> shape) {
  if (shape.empty() || shape.size() > kMaxDimensions)
    return shape_refusal(fmt::format("the tensor has {} dimensions, expected 1 to {}", shape.size(), kMaxDimensions));
  std::optional<uint64_t> values = 1;
  for (uint64_t extent : shape) {
    if (extent == 0)
      return shape_refusal(fmt::format("a dimension of the shape {} is 0, expected at least 1", fmt::join(shape, "x")));
    if (values) values = checked_mul(*values, extent);
  }
  const FormatInfo& format_info = info(format);
  if (shape[0] % format_info.block != 0)
    return shape_refusal(fmt::format("a row has {} values, expected whole blocks of {} ({})", shape[0],
                                     format_info.block, format_info.name));
  const auto bytes = values ? checked_mul(*values / format_info.block, format_info.block_bytes) : std::nullopt;
  if (!bytes || *bytes > kMaxBytes)
    return shape_refusal(
        fmt::format("the shape {} of {} needs more than 2^63-1 bytes", fmt::join(shape, "x"), format_info.name));
  return *bytes;
}

uint64_t TensorInfo::values() const {
  uint64_t product = 1;
  for (uint64_t extent : shape) product *= extent;
  return product;
}

uint64_t TensorInfo::rows() const { return values() / row_length(); }

uint64_t TensorInfo::row_bytes() const { return bytes_of(format, row_length()); }

}  // namespace tw::gguf
