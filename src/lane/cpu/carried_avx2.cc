#include "lane/cpu/carried_kernels.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu {
TW_CARRIED_KERNELS(Avx2)
}  // namespace tw::lane::cpu
