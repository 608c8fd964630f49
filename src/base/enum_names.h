#pragma once

// The names of enumerators in text forms: declared once beside the enum, in its order.
//
//   TW_ENUM_NAMES(Pool, "sum", "max", "argmax");      in the namespace of the enum
//   enum_name(Pool::Max)                              "max"
//   enum_of_name<Pool>("max")                         Pool::Max

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tw {

#define TW_ENUM_NAMES(Enum, ...) \
  constexpr auto enum_names(Enum) { return std::to_array<std::string_view>({__VA_ARGS__}); }

template <class E>
inline constexpr auto kEnumNames = enum_names(E{});

template <class E>
constexpr std::string_view enum_name(E value) {
  return kEnumNames<E>.at(static_cast<size_t>(value));
}
template <class E>
constexpr std::optional<E> enum_of_name(std::string_view name) {
  for (size_t i = 0; i < kEnumNames<E>.size(); ++i)
    if (kEnumNames<E>[i] == name) return static_cast<E>(i);
  return std::nullopt;
}
// "one of sum, max, argmax", for messages.
template <class E>
std::string enum_choices() {
  return fmt::format("one of {}", fmt::join(kEnumNames<E>, ", "));
}

}  // namespace tw
