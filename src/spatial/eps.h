#pragma once

// The epsilon of a norm as an rsqrt node has it: in whole units of 1e-9.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace tw::spatial {

// The n for which n * 1e-9, rounded to a float, is eps. Refused when there is none, or eps is negative or not finite.
Result<uint64_t> eps_nano(float eps, std::string_view subject);

}  // namespace tw::spatial
