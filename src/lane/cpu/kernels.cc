#include "lane/cpu/kernels.h"

namespace tw::lane::cpu {

// Each in the translation unit of its instruction set.
extern const Kernels kScalarKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

const Kernels& kernels(Isa isa) {
  switch (isa) {
    case Isa::Scalar: return kScalarKernels;
    case Isa::Avx2: return kAvx2Kernels;
    case Isa::Avx512: return kAvx512Kernels;
  }
  return kScalarKernels;
}

}  // namespace tw::lane::cpu
