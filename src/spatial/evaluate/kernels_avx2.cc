#include "spatial/evaluate/kernels_body.h"

namespace tw::spatial::evaluate {
namespace {
struct Avx2;
}  // namespace

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = KernelBody<Avx2>::kTable;

}  // namespace tw::spatial::evaluate
