#pragma once

// The lowerings: an op of the step graph to spatial programs for a target. One overload an op, in the file of its
// family; the forms of each, and the condition that selects a form, are in docs/spatial-lowering.md.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// ---- pointwise.h ----
Result<Lowered> lower(const graph::Scale& op, const OpView& view);
Result<Lowered> lower(const graph::Activate& op, const OpView& view);
Result<Lowered> lower(const graph::Softcap& op, const OpView& view);
Result<Lowered> lower(const graph::IntRequant& op, const OpView& view);
Result<Lowered> lower(const graph::IntClamp& op, const OpView& view);

// ---- elementwise.h ----
Result<Lowered> lower(const graph::Elementwise& op, const OpView& view);
Result<Lowered> lower(const graph::RowBroadcast& op, const OpView& view);

// ---- moves.h ----
Result<Lowered> lower(const graph::Transpose& op, const OpView& view);
Result<Lowered> lower(const graph::HeadSlice& op, const OpView& view);

// ---- join.h ----
Result<Lowered> lower(const graph::Join& op, const OpView& view);

// ---- head_matmul.h ----
Result<Lowered> lower(const graph::HeadMatmul& op, const OpView& view);

// ---- conv.h ----
Result<Lowered> lower(const graph::CausalConv& op, const OpView& view);

// ---- decay.h ----
Result<Lowered> lower(const graph::Decay& op, const OpView& view);

// ---- product.h ----
Result<Lowered> lower(const graph::Matmul& op, const OpView& view);

// ---- norm.h, softmax.h ----
Result<Lowered> lower(const graph::RowNorm& op, const OpView& view);
Result<Lowered> lower(const graph::L2Norm& op, const OpView& view);
Result<Lowered> lower(const graph::Softmax& op, const OpView& view);

// ---- rope.h ----
Result<Lowered> lower(const graph::Rope& op, const OpView& view);

// ---- gather.h, set_rows.h ----
Result<Lowered> lower(const graph::RowGather& op, const OpView& view);
Result<Lowered> lower(const graph::RowsGather& op, const OpView& view);
Result<Lowered> lower(const graph::SetRows& op, const OpView& view);

// ---- argmax.h ----
Result<Lowered> lower(const graph::ArgMax& op, const OpView& view);

// ---- attention.h ----
Result<Lowered> lower(const graph::Attention& op, const OpView& view);
Result<Lowered> lower(const graph::FullAttention& op, const OpView& view);

// ---- lut_attention.h ----
Result<Lowered> lower(const graph::LutAttention& op, const OpView& view);

// Any op. Refused (Unsupported) when it has no lowering; the subject of every refusal is the op's result.
Result<Lowered> lower_op(const graph::OpSpec& spec, const OpView& view);

}  // namespace tw::spatial::lower
