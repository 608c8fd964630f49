#pragma once

// Whether two memories hold the same bits.

#include <string>

#include "spatial/evaluate/memory.h"
#include "spatial/program.h"

namespace tw::spatial::evaluate::testing {

// Empty when every tensor of the program is the same in both, all NaNs being one; else where the first difference is.
std::string difference(const Program& program, const Memory& a, const Memory& b);

}  // namespace tw::spatial::evaluate::testing
