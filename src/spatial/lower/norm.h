#pragma once

// Norms of units of a row: rms norm, layer norm, l2 norm. One division a unit, inside the square root's reciprocal;
// sums and scales stay on the accumulation path, only the result is rounded.

#include <optional>
#include <string>
#include <vector>

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// v * s * weight + bias, v = x (+ residual) (- its mean, when centred), s = 1 / sqrt(sum(v^2) / over + eps). x is
// op[0].
struct Norm {
  std::string name;  // of programs: "rmsnorm"
  std::string what;  // of claims
  bool centred = false;
  uint64_t eps_nano = 0;
  uint64_t over = 1;
  uint64_t width = 1;  // of a unit, weight and bias
  std::optional<OpTensor> weight, residual, bias;
};
Result<Norm> norm_of(const graph::RowNorm& spec, const OpView& op);
Result<Norm> norm_of(const graph::L2Norm& spec, const OpView& op);

// Flat, all units in one item. Refused by the accumulator when the row does not fit a page.
Result<Program> norm_flat(const Norm& norm, const OpView& op);
// Flat, an item a unit. Requires units of whole tiles, or one; refused when one does not fit a page.
Result<Program> norm_heads(const Norm& norm, const OpView& op);
// Dense, an item the units of a tile row that are one below the other. Requires the same.
Result<Program> norm_rows(const Norm& norm, const OpView& op);
// Flat or dense, any width under the same condition: the scales of all units first, streamed, then the result.
Result<std::vector<Program>> norm_streamed(const Norm& norm, const OpView& op, bool dense);
// Flat, units that are no whole tiles: as a matrix of one unit a row, and back.
Result<std::vector<Program>> norm_narrow(const Norm& norm, const OpView& op);
// The form that the shape asks for.
Result<Lowered> lower_norm(const Norm& norm, const OpView& op);

}  // namespace tw::spatial::lower
