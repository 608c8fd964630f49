// Products, gated products and mixtures, in one unit because all multiply by the same templates.

#include "lane/cpu/glu_kernels.h"
#include "lane/cpu/moe_kernels.h"
#include "lane/cpu/product_kernel.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {

void product_avx512(const ProductArgs& args, Range range, std::byte* scratch) {
  ProductOf<Avx512>::run(args, range, scratch);
}
void glu_avx512(const GluArgs& args, Range range, std::byte* scratch) { GluOf<Avx512>::run(args, range, scratch); }

extern const MoeKernels kMoeAvx512;
constexpr MoeKernels kMoeAvx512 = moe_kernels_of<Avx512>();

}  // namespace tw::lane::cpu
