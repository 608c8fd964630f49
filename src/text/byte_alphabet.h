#pragma once

// The alphabet in which byte-level vocabularies write bytes: a printable Latin-1 byte is itself, the other 68 bytes are
// U+0100, U+0101, ... in ascending order.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::text {

uint32_t code_of_byte(uint8_t byte);
std::optional<uint8_t> byte_of_code(uint32_t code);

std::string bytes_to_alphabet(std::string_view bytes);
// Characters outside the alphabet stay as they are.
std::string alphabet_to_bytes(std::string_view text);

}  // namespace tw::text
