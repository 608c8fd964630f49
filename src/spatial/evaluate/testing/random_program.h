#pragma once

// Random valid programs with random contents, for comparing the evaluator with the oracle.

#include <cstdint>

#include "spatial/evaluate/memory.h"
#include "spatial/program.h"

namespace tw::spatial::evaluate::testing {

// Any space, map, body, fold, precision and plan that the IR has, in small. Most run to the end; some fault.
Program random_program(TileShape tile, uint64_t seed);
// Contents for every tensor that the program reads: small numbers, and now and then zeros of both signs, infinities and
// NaN. Integers are 0 to 9, which the indices of random programs admit.
void fill_inputs(const Program& program, Memory& memory, uint64_t seed);

}  // namespace tw::spatial::evaluate::testing
