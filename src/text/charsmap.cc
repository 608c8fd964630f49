#include "text/charsmap.h"

#include <fmt/format.h>

namespace tw::text {
namespace {

constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
constexpr uint32_t kValueBit = 1u << 31;

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t out = 0;
  for (size_t i = 0; i < 4; ++i) out |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return out;
}

uint32_t children_of(uint32_t unit) { return (unit & ~kValueBit) >> 10 << ((unit & 1u << 9) >> 6); }
uint32_t label_of(uint32_t unit) { return unit & (kValueBit | 0xFFu); }
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1u) != 0; }

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  Charsmap out;
  if (bytes.empty()) return out;
  if (bytes.size() < 4)
    return refuse(RefusalKind::Malformed, kKey, fmt::format("has {} bytes, expected at least 4", bytes.size()));
  const uint32_t trie_bytes = read_u32(bytes, 0);
  if (trie_bytes % 4 != 0 || trie_bytes > bytes.size() - 4)
    return refuse(
        RefusalKind::Malformed, kKey,
        fmt::format("claims a trie of {} bytes, expected a multiple of 4 of at most {}", trie_bytes, bytes.size() - 4));
  const std::string_view texts = bytes.substr(4 + trie_bytes);
  if (trie_bytes > 0 && (texts.empty() || texts.back() != '\0'))
    return refuse(RefusalKind::Malformed, kKey,
                  fmt::format("its {} bytes of replacements do not end in 0", texts.size()));
  for (size_t at = 4; at < 4 + size_t{trie_bytes}; at += 4) out.units_.push_back(read_u32(bytes, at));
  out.texts_ = texts;
  return out;
}

std::optional<Charsmap::Replacement> Charsmap::match(std::string_view text) const {
  std::optional<Replacement> longest;
  if (units_.empty()) return longest;
  size_t at = children_of(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const bool leaf = has_leaf(units_[at]);
    at ^= children_of(units_[at]);
    if (!leaf) continue;
    if (at >= units_.size()) break;
    const uint32_t place = units_[at] & ~kValueBit;
    if (place >= texts_.size()) break;
    const std::string_view rest = std::string_view(texts_).substr(place);
    longest = Replacement{i + 1, rest.substr(0, rest.find('\0'))};
  }
  return longest;
}

}  // namespace tw::text
