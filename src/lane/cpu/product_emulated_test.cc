// Products, gated products and mixtures of AVX-512 on emulated intrinsics, beside those of the instruction sets this
// machine has.

#define TW_EMULATE_AVX512
#include "lane/cpu/glu_kernels.h"
#include "lane/cpu/moe_kernels.h"
#include "lane/cpu/product_kernel.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {

void product_emulated_avx512(const ProductArgs& args, Range range, std::byte* scratch) {
  ProductOf<EmulatedAvx512>::run(args, range, scratch);
}
void glu_emulated_avx512(const GluArgs& args, Range range, std::byte* scratch) {
  GluOf<EmulatedAvx512>::run(args, range, scratch);
}

extern const MoeKernels kMoeEmulatedAvx512;
constexpr MoeKernels kMoeEmulatedAvx512 = moe_kernels_of<EmulatedAvx512>();

}  // namespace tw::lane::cpu
