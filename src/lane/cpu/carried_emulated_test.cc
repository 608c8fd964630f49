// The AVX-512 kernels over carried memory on emulated intrinsics (kernels_emulated_test.cc).

#define TW_EMULATE_AVX512
#include "lane/cpu/carried_kernels.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {
TW_CARRIED_KERNELS(EmulatedAvx512)
}  // namespace tw::lane::cpu
