#include "lane/cpu/carried_kernels.h"
#include "lane/cpu/simd_scalar.h"

namespace tw::lane::cpu {
TW_CARRIED_KERNELS(Scalar)
}  // namespace tw::lane::cpu
