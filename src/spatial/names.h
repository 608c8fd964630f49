#pragma once

// The names that the enumerators of the IR have in its text and JSON forms and in messages.

#include "base/enum_names.h"
#include "spatial/program.h"

namespace tw::spatial {

TW_ENUM_NAMES(TensorRole, "input", "output", "param", "state");
TW_ENUM_NAMES(BufferKind, "buffer", "scratch");
TW_ENUM_NAMES(LoopVar, "item_y", "item_x", "sub_h", "sub_w", "k_block");
TW_ENUM_NAMES(Axis, "row", "col", "k");
TW_ENUM_NAMES(Pool, "sum", "max", "argmax");
TW_ENUM_NAMES(FoldLevel, "prologue", "body", "epilogue");
TW_ENUM_NAMES(BinaryOp, "add", "sub", "mul", "min", "max", "floor_div");
TW_ENUM_NAMES(UnaryOp, "exp", "ln", "recip", "silu");

}  // namespace tw::spatial
