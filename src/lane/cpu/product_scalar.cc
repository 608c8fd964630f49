#include "lane/cpu/product_kernel.h"
#include "lane/cpu/simd_scalar.h"

namespace tw::lane::cpu {

void product_scalar(const ProductArgs& args, Range range, std::byte* scratch) {
  ProductOf<Scalar>::run(args, range, scratch);
}

}  // namespace tw::lane::cpu
