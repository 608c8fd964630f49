#include "text/utf8.h"

#include <algorithm>

#include "base/check.h"

namespace tw::text {
namespace {

struct Lead {
  size_t bytes;         // of the whole character; 0 when the byte begins none
  uint32_t bits;        // payload of the lead byte
  uint8_t second_low;   // the range of the second byte, narrowed to exclude overlong forms, surrogates and values
  uint8_t second_high;  // above U+10FFFF (Unicode, table 3-7)
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, byte, 0, 0};
  if (byte < 0xC2) return {0, 0, 0, 0};
  if (byte < 0xE0) return {2, byte & 0x1Fu, 0x80, 0xBF};
  if (byte < 0xF0) {
    const uint8_t low = byte == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = byte == 0xED ? 0x9F : 0xBF;
    return {3, byte & 0x0Fu, low, high};
  }
  if (byte < 0xF5) {
    const uint8_t low = byte == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = byte == 0xF4 ? 0x8F : 0xBF;
    return {4, byte & 0x07u, low, high};
  }
  return {0, 0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view text, size_t at) {
  TW_CHECK(at < text.size(), "character at byte {} of {}", at, text.size());
  const Lead lead = lead_of(static_cast<uint8_t>(text[at]));
  if (lead.bytes == 0) return {.bytes = 1};
  uint32_t code = lead.bits;
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (at + i == text.size()) return {.bytes = i, .truncated = true};
    const uint8_t byte = static_cast<uint8_t>(text[at + i]);
    const uint8_t low = i == 1 ? lead.second_low : uint8_t{0x80};
    const uint8_t high = i == 1 ? lead.second_high : uint8_t{0xBF};
    if (byte < low || byte > high) return {.bytes = i};
    code = code << 6 | (byte & 0x3Fu);
  }
  return {.code = code, .bytes = lead.bytes, .valid = true};
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18 & 0x07));
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

size_t incomplete_tail(std::string_view text) {
  for (size_t bytes = std::min<size_t>(3, text.size()); bytes >= 1; --bytes) {
    const Utf8Char last = decode_utf8(text, text.size() - bytes);
    if (last.truncated && last.bytes == bytes) return bytes;
  }
  return 0;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    out.append(next.valid ? text.substr(at, next.bytes) : kReplacement);
    at += next.bytes;
  }
  return out;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (size_t hit = text.find(from); hit != std::string::npos; hit = text.find(from, done)) {
    out.append(text, done, hit - done).append(to);
    done = hit + from.size();
  }
  text = out.append(text, done, std::string::npos);
}

}  // namespace tw::text
