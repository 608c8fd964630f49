#include "lane/cpu/product_kernel.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu {

void product_avx2(const ProductArgs& args, Range range, std::byte* scratch) {
  ProductOf<Avx2>::run(args, range, scratch);
}

}  // namespace tw::lane::cpu
