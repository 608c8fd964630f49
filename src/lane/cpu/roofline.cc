#include "lane/cpu/roofline.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "base/check.h"

namespace tw::lane::cpu {

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kDotRounds = uint64_t{1} << 21;

RooflineKernels kernels_of(Isa isa) {
  switch (isa) {
    case Isa::Scalar: return roofline_scalar();
    case Isa::Avx2: return roofline_avx2();
    case Isa::Avx512: return roofline_avx512();
  }
  return roofline_scalar();
}

// The shortest time of several runs of `work` on all threads.
template <class Work>
double best_seconds(Pool& pool, uint32_t repeats, const Work& work) {
  double best = 1e30;
  for (uint32_t i = 0; i <= repeats; ++i) {  // the first one warms up
    const auto from = Clock::now();
    pool.run(work);
    const double seconds = std::chrono::duration<double>(Clock::now() - from).count();
    if (i != 0) best = std::min(best, seconds);
  }
  return best;
}

}  // namespace

double stream_read_bandwidth(Isa isa, Pool& pool, uint64_t bytes, uint32_t repeats) {
  const RooflineKernels kernels = kernels_of(isa);
  const uint64_t threads = pool.threads();
  const uint64_t part = std::max<uint64_t>(bytes / threads, uint64_t{1} << 20) / 256 * 256;
  std::vector<std::unique_ptr<std::byte[]>> parts(threads);
  for (auto& memory : parts) memory = std::make_unique<std::byte[]>(part);
  std::vector<uint32_t> sums(threads * 16);
  const double seconds = best_seconds(
      pool, repeats, [&](unsigned thread) { sums[thread * 16] = kernels.read(parts[thread].get(), part); });
  TW_CHECK(sums[0] == 0, "zeroed memory has the checksum {}", sums[0]);
  return static_cast<double>(part * threads) / seconds;
}

double int8_dot_peak(Isa isa, Pool& pool, uint32_t repeats) {
  const RooflineKernels kernels = kernels_of(isa);
  const uint64_t threads = pool.threads();
  const uint64_t rounds = isa == Isa::Scalar ? kDotRounds / 16 : kDotRounds;
  std::vector<int32_t> sums(threads * 16);
  const double seconds =
      best_seconds(pool, repeats, [&](unsigned thread) { sums[thread * 16] = kernels.dots(rounds); });
  return static_cast<double>(rounds * kDotsARound * threads) / seconds;
}

}  // namespace tw::lane::cpu
