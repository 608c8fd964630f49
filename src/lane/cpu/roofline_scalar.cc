#include "lane/cpu/roofline_kernel.h"
#include "lane/cpu/simd_scalar.h"

namespace tw::lane::cpu {

RooflineKernels roofline_scalar() { return {stream_read<Scalar>, dot_rounds<Scalar>}; }

}  // namespace tw::lane::cpu
