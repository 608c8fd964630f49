#pragma once

// The oracle: a program run an element at a time, as the IR's pages read, with pages of plain numbers and no grid of
// tiles. It knows nothing of strips, codes, slots or races, only values and the faults of pages, indices and numbers.

#include "spatial/evaluate/evaluate.h"

namespace tw::spatial::evaluate::testing {

// Requires a valid program; every tensor it reads is set or has an init. Items run in the order listed.
Run run_naive(const Program& program, Memory& memory);

}  // namespace tw::spatial::evaluate::testing
