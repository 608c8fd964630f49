#pragma once

#include "fuse/shim.h"

namespace tw::lane::cpu {

// The fused launches that the CPU lane runs: all that it has kernels for, less those where one thread would do the work
// of many.
const fuse::Shim& shim();

}  // namespace tw::lane::cpu
