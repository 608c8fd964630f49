#include "lane/cpu/carried_kernels.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {
TW_CARRIED_KERNELS(Avx512)
}  // namespace tw::lane::cpu
