#pragma once

// A word that is a number and nothing else.

#include <charconv>
#include <string_view>

namespace tw {

// False when the whole of the text is no number of the type; `value` is then of no meaning.
template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end;
}

}  // namespace tw
