#include "lane/cpu/kernels_table.h"
#include "lane/cpu/simd_scalar.h"

namespace tw::lane::cpu {

extern const Kernels kScalarKernels;
constexpr Kernels kScalarKernels = kernels_of<Scalar>();

}  // namespace tw::lane::cpu
