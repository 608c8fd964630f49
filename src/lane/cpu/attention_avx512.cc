#include "lane/cpu/attention_kernels.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {
TW_ATTENTION_KERNELS(Avx512)
}  // namespace tw::lane::cpu
