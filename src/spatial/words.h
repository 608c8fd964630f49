#pragma once

// The words that the enumerators of the IR have in its text and JSON forms, in the order of each enum.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "spatial/program.h"

namespace tw::spatial {

template <class E>
struct Words;

#define TW_SPATIAL_WORDS(Enum, ...)                                                                            \
  template <>                                                                                                  \
  struct Words<Enum> {                                                                                         \
    static constexpr std::array<std::string_view, std::to_array<std::string_view>({__VA_ARGS__}).size()> kAll{ \
        __VA_ARGS__};                                                                                          \
  }

TW_SPATIAL_WORDS(TensorRole, "input", "output", "param", "state");
TW_SPATIAL_WORDS(BufferKind, "buffer", "scratch");
TW_SPATIAL_WORDS(LoopVar, "item_y", "item_x", "sub_h", "sub_w", "k_block");
TW_SPATIAL_WORDS(Axis, "row", "col", "k");
TW_SPATIAL_WORDS(Pool, "sum", "max", "argmax");
TW_SPATIAL_WORDS(FoldLevel, "prologue", "body", "epilogue");
TW_SPATIAL_WORDS(BinaryOp, "add", "sub", "mul", "min", "max", "floor_div");
TW_SPATIAL_WORDS(UnaryOp, "exp", "ln", "recip", "silu");

#undef TW_SPATIAL_WORDS

template <class E>
constexpr std::string_view word(E value) {
  return Words<E>::kAll.at(static_cast<size_t>(value));
}
template <class E>
constexpr std::optional<E> of_word(std::string_view text) {
  for (size_t i = 0; i < Words<E>::kAll.size(); ++i)
    if (Words<E>::kAll[i] == text) return static_cast<E>(i);
  return std::nullopt;
}
// "one of input, output, ...", for messages.
template <class E>
std::string words() {
  std::string all = "one of ";
  for (size_t i = 0; i < Words<E>::kAll.size(); ++i) {
    if (i > 0) all += ", ";
    all += Words<E>::kAll[i];
  }
  return all;
}

// A double so that it reads back with the same bits: a NaN by its bits.
std::string real_text(double value);
// False when the text is no number.
bool parse_real(std::string_view text, double& value);

}  // namespace tw::spatial
