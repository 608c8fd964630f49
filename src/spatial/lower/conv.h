#pragma once

// The causal convolution over a carried ring: always two sections, with the barrier between them. A step first shifts
// the ring in place and then reduces against the new one; a block of rows computes all outputs against the old ring and
// then replaces it.
//
// The ring and the weights lie flat (1 x taps*chan), or dense (taps x chan), and step and block agree on which, so that
// steps go on from the ring that a block left.

#include "graph/op.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// Extents and precisions of a convolution. Refused without taps or channels.
struct Conv {
  uint64_t rows = 0;
  uint64_t taps = 0;
  uint64_t chan = 0;
  Precision x{};
  Precision w{};
  Precision ring{};
  Precision out{};
  Precision accumulator{};
};
Result<Conv> conv_of(const OpView& op);

// Whether the ring lies dense: a row of all taps is wide, or the flat step does not fit a site.
bool conv_ring_is_dense(const OpView& op);

// One row, flat ring.
Result<std::vector<Program>> conv_step_flat(const OpView& op);
// One row, dense ring: an item a tile of channels. Requires taps <= tile rows.
Result<std::vector<Program>> conv_step_matrix(const OpView& op);
// Rows, dense, over either ring: an item a block of a tile row. Requires taps <= tile rows.
Result<std::vector<Program>> conv_block(const OpView& op, bool dense_ring);

}  // namespace tw::spatial::lower
