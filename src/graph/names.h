#pragma once

// The names of enumerators in the text form, in the order of the enum.

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "graph/step_graph.h"

namespace tw::graph {

template <class E>
struct EnumNames;

#define TW_GRAPH_ENUM_NAMES(Enum, ...)                                                                           \
  template <>                                                                                                    \
  struct EnumNames<Enum> {                                                                                       \
    static constexpr std::array<std::string_view, std::to_array<std::string_view>({__VA_ARGS__}).size()> kNames{ \
        __VA_ARGS__};                                                                                            \
  }

TW_GRAPH_ENUM_NAMES(Arithmetic, "add", "sub", "mul", "div", "min", "max");
TW_GRAPH_ENUM_NAMES(ActivationKind, "silu", "sigmoid", "gelu_tanh", "relu", "softplus", "tanh", "exp");
TW_GRAPH_ENUM_NAMES(NormKind, "rms", "layer");
TW_GRAPH_ENUM_NAMES(ScoreKind, "softmax", "sigmoid");
TW_GRAPH_ENUM_NAMES(GateKind, "silu", "sigmoid");
TW_GRAPH_ENUM_NAMES(KeyHeadOf, "modulo", "grouped");
TW_GRAPH_ENUM_NAMES(Window::Kind, "none", "sliding", "chunked");
TW_GRAPH_ENUM_NAMES(MoeAct::Kind, "swiglu", "geglu", "clamped_swiglu");
TW_GRAPH_ENUM_NAMES(Element, "f32", "i32");
TW_GRAPH_ENUM_NAMES(Role, "param", "state", "table", "const", "activation");

#undef TW_GRAPH_ENUM_NAMES

template <class E>
constexpr std::string_view enum_name(E value) {
  return EnumNames<E>::kNames.at(static_cast<size_t>(value));
}
template <class E>
constexpr std::optional<E> enum_of_name(std::string_view name) {
  for (size_t i = 0; i < EnumNames<E>::kNames.size(); ++i)
    if (EnumNames<E>::kNames[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace tw::graph
