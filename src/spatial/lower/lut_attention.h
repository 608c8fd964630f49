#pragma once

// Integer attention of one query row by a table of exponentials: scores, weights, context, all exact. Each section is
// flat, cut into blocks of columns where its result is wide.

#include <vector>

#include "graph/op.h"
#include "spatial/lower/attention_shape.h"

namespace tw::spatial::lower {

Result<std::vector<Program>> lut_attention(const graph::LutAttention& op, const OpView& view);

}  // namespace tw::spatial::lower
