#include "lane/cpu/roofline_kernel.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu {

RooflineKernels roofline_avx2() { return {stream_read<Avx2>, dot_rounds<Avx2>}; }

}  // namespace tw::lane::cpu
