#include "gguf/cursor.h"

#include <fmt/format.h>

#include <utility>

namespace tw::gguf {

Refusal Cursor::refuse_at(uint64_t offset, RefusalKind kind, std::string_view reason, std::string remedy) const {
  return refuse(kind, label_, fmt::format("at byte {}{}{}: {}", offset, context_.empty() ? "" : ", ", context_, reason),
                std::move(remedy));
}

Refusal Cursor::refuse_end(std::string_view what, uint64_t needed) const {
  return refuse_at(at_, RefusalKind::Malformed,
                   fmt::format("the file ends inside {}: expected {} bytes, found {}", what, needed, remaining()));
}

Result<std::string_view> Cursor::read_string(std::string_view what) {
  const uint64_t start = at_;
  TW_TRY(const uint64_t length, read<uint64_t>(what));
  if (length > remaining())
    return refuse_at(start, RefusalKind::Malformed,
                     fmt::format("{} claims {} bytes, the file has {} left", what, length, remaining()));
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
  at_ += length;
  return text;
}

Result<std::span<const std::byte>> Cursor::take(uint64_t count, uint64_t item_bytes, std::string_view what) {
  TW_TRY_VOID(expect_room(count, item_bytes, what, at_));
  const std::span<const std::byte> items = bytes_.subspan(at_, count * item_bytes);
  at_ += items.size();
  return items;
}

Result<void> Cursor::expect_room(uint64_t count, uint64_t item_bytes, std::string_view what, uint64_t offset) const {
  TW_CHECK(item_bytes > 0, "{} of no bytes", what);
  if (count <= remaining() / item_bytes) return {};
  return refuse_at(offset, RefusalKind::Malformed,
                   fmt::format("the file claims {} {} of at least {} bytes each, it has {} bytes left", count, what,
                               item_bytes, remaining()));
}

}  // namespace tw::gguf
