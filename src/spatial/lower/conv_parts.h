#pragma once

// What the sections of a convolution have in common.

#include "spatial/builder.h"
#include "spatial/lower/conv.h"

namespace tw::spatial::lower {

// The ring as a tensor of a section: read, or in place.
TensorId conv_ring(Builder& b, const OpView& op, const Conv& c, bool dense, TensorRole role);
TensorId conv_weight(Builder& b, const OpView& op, const Conv& c, bool dense);

// Refused when a tile has fewer rows than there are taps.
Result<void> conv_fits_tile(const OpView& op, const Conv& c);

// Both sections, in order. What refuses one is about the op.
Result<std::vector<Program>> conv_sections(const OpView& op, Result<Program> first, Result<Program> second);

// The claim of the section that moves inputs into the ring.
NumericsClaim conv_ring_claim(const Conv& c);

}  // namespace tw::spatial::lower
