#pragma once

// What several forms of attention share: a position that is checked before anything uses it, sinks spread over rows.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "spatial/builder.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

inline int64_t as_int(uint64_t value) { return static_cast<int64_t>(value); }

// The operand's tensor as a `rows` x `cols` one; the one that is there when an operand before it was the same.
TensorId declare_operand(Builder& builder, const OpTensor& operand, uint64_t rows, uint64_t cols, Precision dtype);

// A one-element page of P, read from `page` by two stages: P - 1, then, checked to be below `most`, P again.
BufferId checked_count(Builder& builder, BufferId page, Precision dtype, uint64_t most);
// The same, loading the position first.
BufferId load_position(Builder& builder, const OpTensor& position, Precision dtype, uint64_t most);

// NAME: 1 x n, element e the sink of head_of(e), or a masked score where there is no head.
using HeadOf = std::function<std::optional<uint64_t>(uint64_t element)>;
Result<Program> spread_sinks(const OpView& op, const OpTensor& sinks, const std::string& name, uint64_t n,
                             const HeadOf& head_of);

}  // namespace tw::spatial::lower
