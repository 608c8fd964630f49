#pragma once

#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower::testing {

// What a run gave: the definition's result, and what it leaves in every other tensor that the op updates.
void expect_values(const Outcome& outcome, const OpCase& c, const Target& target, Tolerance tolerance = {});

}  // namespace tw::spatial::lower::testing
