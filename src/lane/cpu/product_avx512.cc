#include "lane/cpu/product_kernel.h"
#include "lane/cpu/simd_avx512.h"

namespace tw::lane::cpu {

void product_avx512(const ProductArgs& args, Range range, std::byte* scratch) {
  ProductOf<Avx512>::run(args, range, scratch);
}

}  // namespace tw::lane::cpu
