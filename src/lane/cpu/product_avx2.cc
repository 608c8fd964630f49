// Products, gated products and mixtures, in one unit because all multiply by the same templates.

#include "lane/cpu/glu_kernels.h"
#include "lane/cpu/moe_kernels.h"
#include "lane/cpu/product_kernel.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu {

void product_avx2(const ProductArgs& args, Range range, std::byte* scratch) {
  ProductOf<Avx2>::run(args, range, scratch);
}
void glu_avx2(const GluArgs& args, Range range, std::byte* scratch) { GluOf<Avx2>::run(args, range, scratch); }

extern const MoeKernels kMoeAvx2;
constexpr MoeKernels kMoeAvx2 = moe_kernels_of<Avx2>();

}  // namespace tw::lane::cpu
