#pragma once

// What the kernel tests share: every set of kernels this machine can run, runs of a launch, random values, comparisons.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lane/cpu/kernels.h"

namespace tw::lane::cpu {

extern const Kernels kEmulatedAvx512Kernels;

namespace testing {

struct Lane {
  std::string name;
  const Kernels* kernels;
};

// The reference first.
inline std::vector<Lane> lanes() {
  std::vector<Lane> all{{"reference", &reference_kernels()}};
  for (const Isa isa : kIsas)
    if (supported(isa)) all.push_back({std::string(name(isa)), &kernels(isa)});
  if (supported(Isa::Avx2)) all.push_back({"avx512-emulated", &kEmulatedAvx512Kernels});
  return all;
}

// Runs all items, in three uneven parts from the last to the first.
template <class Args>
void launch(Kernel<Args> kernel, const Args& args, uint64_t count, size_t bytes = 0) {
  if constexpr (requires { scratch_bytes(args); }) bytes = scratch_bytes(args);
  std::vector<std::byte> storage(bytes + 64);
  void* scratch = storage.data();
  size_t space = storage.size();
  std::align(64, bytes, scratch, space);
  const uint64_t cut1 = count / 3;
  const uint64_t cut2 = cut1 + (count - cut1 + 1) / 2;
  for (const Range range : {Range{cut2, count}, Range{cut1, cut2}, Range{0, cut1}})
    kernel(args, range, static_cast<std::byte*>(scratch));
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  std::vector<float> values(size_t n, float spread = 1.0f) {
    std::normal_distribution<float> normal(0.0f, spread);
    std::vector<float> v(n);
    for (float& x : v) x = normal(engine_);
    return v;
  }
  std::vector<float> between(size_t n, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> v(n);
    for (float& x : v) x = uniform(engine_);
    return v;
  }

 private:
  std::mt19937 engine_;
};

// Equal bits, any NaN being equal to any other.
inline ::testing::AssertionResult same_bits(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << got.size() << " values, not " << want.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(want[i]))
      return ::testing::AssertionFailure() << "value " << i << " is " << got[i] << ", not " << want[i];
  }
  return ::testing::AssertionSuccess();
}

// Runs on every lane, expects equal bits, answers the values.
inline std::vector<float> on_every_lane(const std::function<std::vector<float>(const Kernels&)>& run) {
  std::vector<float> want;
  for (const Lane& lane : lanes()) {
    const std::vector<float> got = run(*lane.kernels);
    if (lane.name == "reference") want = got;
    EXPECT_TRUE(same_bits(got, want)) << "on " << lane.name;
  }
  return want;
}

// |got - want| <= tolerance * max(1, |want|).
inline void expect_near(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << "value " << i;
}

}  // namespace testing
}  // namespace tw::lane::cpu
