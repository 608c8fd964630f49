#include "lane/cpu/roofline_kernel.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {

RooflineKernels roofline_avx512() { return {stream_read<Avx512>, dot_rounds<Avx512>}; }

}  // namespace tw::lane::cpu
