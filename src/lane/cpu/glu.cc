#include "lane/cpu/glu.h"

#include "base/round.h"

namespace tw::lane::cpu {

uint64_t items(const GluArgs& args) {
  const uint64_t outputs = kPanel * panels_an_item(args.out);
  return ceil_div(args.product.parts[0].w.n, outputs);
}

size_t scratch_bytes(const GluArgs& args) {
  return scratch_bytes(args.product) + glu_slots(args) * 2 * kBlock * sizeof(float);
}

GluKernel glu_kernel(Isa isa) {
  switch (isa) {
    case Isa::Scalar: return glu_scalar;
    case Isa::Avx2: return glu_avx2;
    case Isa::Avx512: return glu_avx512;
  }
  return glu_scalar;
}

}  // namespace tw::lane::cpu
