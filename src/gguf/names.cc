#include "gguf/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tw::gguf {
namespace {

constexpr size_t kShownBytes = 80;
constexpr size_t kNearNames = 3;

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// Bytes of the UTF-8 character that starts at `at`, or 0 when none does: Unicode 15, table 3-7 (no overlong forms, no
// surrogates, nothing past U+10FFFF).
size_t utf8_length(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size() - at) return 0;
  const uint8_t second = byte_at(text, at + 1);
  const uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte_at(text, at + i) & 0xc0) != 0x80) return 0;
  return length;
}

// C0 controls, delete, and C1 controls (U+0080 to U+009F).
bool is_control(std::string_view character) {
  const uint8_t lead = byte_at(character, 0);
  return lead < 0x20 || lead == 0x7f || (lead == 0xc2 && byte_at(character, 1) < 0xa0);
}

// Levenshtein distance when it is at most `limit`, else limit + 1. Only the band of the table within `limit` of the
// diagonal is computed: O(limit * length).
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  const size_t far = limit + 1;
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return far;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = std::min(j, far);
  for (size_t i = 1; i <= a.size(); ++i) {
    const size_t first = i > limit ? i - limit : 1;
    const size_t last = std::min(b.size(), i + limit);
    size_t diagonal = row[first - 1];
    row[first - 1] = first == 1 ? std::min(i, far) : far;
    size_t least = row[first - 1];
    for (size_t j = first; j <= last; ++j) {
      const size_t above = j == i + limit ? far : row[j];
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, above + 1, row[j - 1] + 1, far});
      least = std::min(least, row[j]);
    }
    if (least > limit) return far;
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> name_fault(std::string_view text, size_t max_bytes) {
  if (text.empty()) return "is empty, expected at least 1 byte";
  if (text.size() > max_bytes) return fmt::format("has {} bytes, expected at most {}", text.size(), max_bytes);
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0)
      return fmt::format("holds byte 0x{:02x} at position {}, expected UTF-8 text", byte_at(text, at), at);
    if (is_control(text.substr(at, length)))
      return fmt::format("holds a control character (0x{:02x}) at position {}, expected printable text",
                         byte_at(text, at + length - 1), at);
    at += length;
  }
  return std::nullopt;
}

std::string quote(std::string_view text) {
  std::string shown = "\"";
  size_t at = 0;
  while (at < text.size() && at < kShownBytes) {
    const size_t length = utf8_length(text, at);
    const std::string_view character = text.substr(at, std::max<size_t>(length, 1));
    if (character == "\"" || character == "\\")
      shown += fmt::format("\\{}", character);
    else if (length == 0 || is_control(character))
      for (size_t i = 0; i < character.size(); ++i) shown += fmt::format("\\x{:02x}", byte_at(character, i));
    else
      shown += character;
    at += character.size();
  }
  shown += at < text.size() ? fmt::format("...\" ({} bytes)", text.size()) : "\"";
  return shown;
}

std::vector<std::string_view> near_names(std::string_view wanted, const std::vector<std::string_view>& names) {
  const size_t limit = std::max<size_t>(2, wanted.size() / 4);
  std::vector<std::pair<size_t, std::string_view>> found;
  for (std::string_view name : names) {
    const size_t distance = edit_distance(wanted, name, limit);
    if (distance > limit) continue;
    const std::pair candidate(distance, name);
    found.insert(std::upper_bound(found.begin(), found.end(), candidate), candidate);
    if (found.size() > kNearNames) found.pop_back();
  }
  std::vector<std::string_view> nearest;
  nearest.reserve(found.size());
  for (const auto& [distance, name] : found) nearest.push_back(name);
  return nearest;
}

}  // namespace tw::gguf
