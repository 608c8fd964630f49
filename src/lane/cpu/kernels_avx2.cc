#include "lane/cpu/kernels_table.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu {

extern const Kernels kAvx2Kernels;
constexpr Kernels kAvx2Kernels = kernels_of<Avx2>();

}  // namespace tw::lane::cpu
