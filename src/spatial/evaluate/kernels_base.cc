#include "spatial/evaluate/kernels_body.h"

namespace tw::spatial::evaluate {
namespace {
struct Base;
}  // namespace

extern const Kernels kAvx2Kernels;  // kernels_avx2.cc

const Kernels& portable_kernels() { return KernelBody<Base>::kTable; }

const Kernels& kernels() {
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return avx2 ? kAvx2Kernels : KernelBody<Base>::kTable;
}

}  // namespace tw::spatial::evaluate
