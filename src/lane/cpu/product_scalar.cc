// Products, gated products and mixtures, in one unit because all multiply by the same templates.

#include "lane/cpu/glu_kernels.h"
#include "lane/cpu/moe_kernels.h"
#include "lane/cpu/product_kernel.h"
#include "lane/cpu/simd_scalar.h"

namespace tw::lane::cpu {

void product_scalar(const ProductArgs& args, Range range, std::byte* scratch) {
  ProductOf<Scalar>::run(args, range, scratch);
}
void glu_scalar(const GluArgs& args, Range range, std::byte* scratch) { GluOf<Scalar>::run(args, range, scratch); }

extern const MoeKernels kMoeScalar;
constexpr MoeKernels kMoeScalar = moe_kernels_of<Scalar>();

}  // namespace tw::lane::cpu
