#include "lane/cpu/kernels_table.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {

extern const Kernels kAvx512Kernels;
constexpr Kernels kAvx512Kernels = kernels_of<Avx512>();

}  // namespace tw::lane::cpu
