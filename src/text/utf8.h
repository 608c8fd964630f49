#pragma once

// UTF-8, strictly (no overlong forms, surrogates or values above U+10FFFF), over bytes that need not be valid.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::text {

inline constexpr uint32_t kReplacementCode = 0xFFFD;
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, which stands for a space in token texts

struct Utf8Char {
  uint32_t code = kReplacementCode;  // U+FFFD when not valid
  size_t bytes = 0;  // of the character; when not valid, of the longest part that could begin one, at least 1
  bool valid = false;
  bool truncated = false;  // not valid only because the text ends here
};

// The character that begins at `at`. Requires at < text.size().
Utf8Char decode_utf8(std::string_view text, size_t at);

void append_utf8(std::string& out, uint32_t code);

// Bytes at the end of `text` that begin a character whose rest is missing; 0 to 3.
size_t incomplete_tail(std::string_view text);

// `text` with U+FFFD for every part that is not valid.
std::string valid_utf8(std::string_view text);

void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace tw::text
