#include "lane/cpu/attention_kernels.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu {
TW_ATTENTION_KERNELS(Avx2)
}  // namespace tw::lane::cpu
