#include "lane/cpu/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"

namespace tw::lane::cpu {

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kDotRounds = uint64_t{1} << 20;
constexpr uint64_t kLeastBytes = uint64_t{1} << 20;
// Read by each measurement, in as many passes as it takes.
constexpr uint64_t kBytesARun = uint64_t{256} << 20;

RooflineKernels kernels_of(Isa isa) {
  switch (isa) {
    case Isa::Scalar: return roofline_scalar();
    case Isa::Avx2: return roofline_avx2();
    case Isa::Avx512: return roofline_avx512();
  }
  return roofline_scalar();
}

double seconds_since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

double dot_rate(Pool& pool, const DotLoop& loop, uint64_t rounds, uint32_t repeats) {
  std::vector<int32_t> sums(pool.threads() * 16);
  double best = 0;
  for (uint32_t i = 0; i <= repeats; ++i) {  // the first one warms up
    const auto from = Clock::now();
    pool.run([&](unsigned thread) { sums[thread * 16] = loop.run(rounds); });
    const double rate = static_cast<double>(rounds * loop.products * pool.threads()) / seconds_since(from);
    if (i != 0) best = std::max(best, rate);
  }
  return best;
}

}  // namespace

StreamRead::StreamRead(Isa isa, Pool& pool, uint64_t bytes) : isa_(isa), pool_(&pool) {
  part_ = std::clamp(bytes, kLeastBytes, kMostBytes) / pool.threads() / kReadStep * kReadStep;
  for (unsigned thread = 0; thread < pool.threads(); ++thread) {
    parts_.push_back(LargeMemory::allocate(part_));
    TW_CHECK(!parts_.back().empty(), "no room for {} bytes to read", part_);
    std::memset(parts_.back().data(), 0, part_);  // pages that nobody has written are all the same one
  }
}

double StreamRead::run() {
  const RooflineKernels kernels = kernels_of(isa_);
  const uint64_t passes = std::max<uint64_t>(1, kBytesARun / (part_ * pool_->threads()));
  std::vector<uint32_t> sums(pool_->threads() * 16);
  const auto from = Clock::now();
  pool_->run([&](unsigned thread) {
    for (uint64_t pass = 0; pass < passes; ++pass) sums[thread * 16] |= kernels.read(parts_[thread].data(), part_);
  });
  const double seconds = seconds_since(from);
  TW_CHECK(sums[0] == 0, "zeroed memory has the checksum {}", sums[0]);
  return static_cast<double>(part_ * passes * pool_->threads()) / seconds;
}

DotPeaks dot_peaks(Isa isa, Pool& pool, uint32_t repeats) {
  const RooflineKernels kernels = kernels_of(isa);
  const uint64_t rounds = isa == Isa::Scalar ? kDotRounds / 64 : kDotRounds;
  return {dot_rate(pool, kernels.bytes, rounds, repeats), dot_rate(pool, kernels.codes, rounds, repeats)};
}

}  // namespace tw::lane::cpu
