#include "lane/cpu/attention_kernels.h"
#include "lane/cpu/simd_scalar.h"

namespace tw::lane::cpu {
TW_ATTENTION_KERNELS(Scalar)
}  // namespace tw::lane::cpu
