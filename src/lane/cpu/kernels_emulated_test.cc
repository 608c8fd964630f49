// The AVX-512 kernels on emulated intrinsics; kernels_test.h runs them beside the others.

#define TW_EMULATE_AVX512
#include "lane/cpu/kernels_table.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {

extern const Kernels kEmulatedAvx512Kernels;
constexpr Kernels kEmulatedAvx512Kernels = kernels_of<EmulatedAvx512>();

}  // namespace tw::lane::cpu
