#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace tw::text {
namespace {

constexpr size_t kCodes = 256 + 68;

struct Alphabet {
  std::array<uint32_t, 256> codes{};
  std::array<int16_t, kCodes> bytes{};  // -1: no byte
};

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Alphabet make_alphabet() {
  Alphabet out;
  for (int16_t& byte : out.bytes) byte = -1;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    out.codes[byte] = stands_for_itself(byte) ? byte : next++;
    out.bytes[out.codes[byte]] = static_cast<int16_t>(byte);
  }
  return out;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

uint32_t code_of_byte(uint8_t byte) { return kAlphabet.codes[byte]; }

std::optional<uint8_t> byte_of_code(uint32_t code) {
  if (code >= kCodes || kAlphabet.bytes[code] < 0) return std::nullopt;
  return static_cast<uint8_t>(kAlphabet.bytes[code]);
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(out, code_of_byte(static_cast<uint8_t>(byte)));
  return out;
}

std::string alphabet_to_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    const std::optional<uint8_t> byte = next.valid ? byte_of_code(next.code) : std::nullopt;
    if (byte)
      out.push_back(static_cast<char>(*byte));
    else
      out.append(text.substr(at, next.bytes));
    at += next.bytes;
  }
  return out;
}

}  // namespace tw::text
