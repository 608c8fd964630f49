#include "lane/cpu/roofline_kernel.h"
#include "lane/cpu/simd_scalar.h"

namespace tw::lane::cpu {

namespace {

constexpr int kChains = 4;

// The kernels' own dot, one byte after the other.
int32_t dot_rounds(uint64_t rounds) {
  Scalar::B u = Scalar::bset1(3);
  const Scalar::B s = Scalar::bset1(2);
  Scalar::I sums[kChains] = {Scalar::izero(), Scalar::izero(), Scalar::izero(), Scalar::izero()};
  for (uint64_t r = 0; r < rounds; ++r) {
    asm volatile("" : : "r"(&u) : "memory");
    for (Scalar::I& sum : sums) sum = Scalar::dot4_small(sum, u, s);
  }
  alignas(64) int32_t lanes[16];
  int32_t total = 0;
  for (const Scalar::I& sum : sums) {
    Scalar::istore(lanes, sum);
    for (const int32_t lane : lanes) total ^= lane;
  }
  return total;
}

}  // namespace

RooflineKernels roofline_scalar() {
  const DotLoop dots{dot_rounds, kChains * 64};
  return {stream_read<Scalar>, dots, dots};
}

}  // namespace tw::lane::cpu
