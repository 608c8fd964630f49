#pragma once

// The names of enumerators in the text form.

#include "base/enum_names.h"
#include "graph/step_graph.h"

namespace tw::graph {

TW_ENUM_NAMES(Arithmetic, "add", "sub", "mul", "div", "min", "max");
TW_ENUM_NAMES(ActivationKind, "silu", "sigmoid", "gelu_tanh", "relu", "softplus", "tanh", "exp");
TW_ENUM_NAMES(NormKind, "rms", "layer");
TW_ENUM_NAMES(ScoreKind, "softmax", "sigmoid");
TW_ENUM_NAMES(GateKind, "silu", "sigmoid");
TW_ENUM_NAMES(KeyHeadOf, "modulo", "grouped");
TW_ENUM_NAMES(Window::Kind, "none", "sliding", "chunked");
TW_ENUM_NAMES(MoeAct::Kind, "swiglu", "geglu", "clamped_swiglu");
TW_ENUM_NAMES(Element, "f32", "i32");
TW_ENUM_NAMES(Role, "param", "state", "table", "const", "activation");

}  // namespace tw::graph
