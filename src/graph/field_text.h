#pragma once

// The values of op fields as words of the text form, one overload a field type.

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/parse_number.h"
#include "graph/names.h"
#include "graph/op.h"

namespace tw::graph {

// ---- print: exact, so that reading gives the same value ----

inline std::string value_text(bool value) { return value ? "true" : "false"; }
inline std::string value_text(uint32_t value) { return fmt::to_string(value); }
inline std::string value_text(int32_t value) { return fmt::to_string(value); }
inline std::string value_text(float value) { return fmt::to_string(value); }
template <class E>
requires std::is_enum_v<E> std::string value_text(E value) { return std::string(enum_name(value)); }
inline std::string value_text(const Window& window) {
  const std::string_view kind = enum_name(window.kind);
  return window == Window{} ? std::string(kind) : fmt::format("{}:{}", kind, window.size);
}
inline std::string value_text(const MoeAct& act) {
  const std::string_view kind = enum_name(act.kind);
  return act.limit == 0 && act.slope == 0 ? std::string(kind) : fmt::format("{}:{}:{}", kind, act.limit, act.slope);
}

// ---- parse: false when the word is no such value ----

template <class Number>
requires std::integral<Number> || std::floating_point<Number>
bool parse_value(std::string_view word, Number& value) { return parse_number(word, value); }
inline bool parse_value(std::string_view word, bool& value) {
  value = word == "true";
  return value || word == "false";
}
template <class E>
requires std::is_enum_v<E>
bool parse_value(std::string_view word, E& value) {
  const std::optional<E> found = enum_of_name<E>(word);
  value = found.value_or(E{});
  return found.has_value();
}
// "kind" or "kind:rest": takes the kind off.
template <class E>
bool take_kind(std::string_view& word, E& kind) {
  const size_t colon = word.find(':');
  if (!parse_value(word.substr(0, colon), kind)) return false;
  word.remove_prefix(colon == std::string_view::npos ? word.size() : colon + 1);
  return colon == std::string_view::npos || !word.empty();
}
inline bool parse_value(std::string_view word, Window& window) {
  window = {};
  return take_kind(word, window.kind) && (word.empty() || parse_value(word, window.size));
}
inline bool parse_value(std::string_view word, MoeAct& act) {
  act = {};
  if (!take_kind(word, act.kind)) return false;
  if (word.empty()) return true;
  const size_t colon = word.find(':');
  return colon != std::string_view::npos && parse_value(word.substr(0, colon), act.limit) &&
         parse_value(word.substr(colon + 1), act.slope);
}

// ---- what a field of the type may be, for messages ----

inline std::string value_kind(bool) { return "true or false"; }
inline std::string value_kind(uint32_t) { return "a whole number"; }
inline std::string value_kind(int32_t) { return "an integer"; }
inline std::string value_kind(float) { return "a number"; }
template <class E>
requires std::is_enum_v<E> std::string value_kind(E) { return enum_choices<E>(); }
inline std::string value_kind(const Window&) { return "none, sliding:SIZE or chunked:SIZE"; }
inline std::string value_kind(const MoeAct&) { return "swiglu, geglu or clamped_swiglu:LIMIT:SLOPE"; }

}  // namespace tw::graph
