// The AVX-512 kernels of attention on emulated intrinsics (kernels_emulated_test.cc).

#define TW_EMULATE_AVX512
#include "lane/cpu/attention_kernels.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {
TW_ATTENTION_KERNELS(EmulatedAvx512)
}  // namespace tw::lane::cpu
