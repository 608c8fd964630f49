#pragma once

// Fused launches against their parts run apart: the same bits on every instruction set and number of threads.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/half.h"
#include "lane/cpu/testing/lanes.h"
#include "lane/cpu/testing/schedule_runner.h"

namespace tw::lane::cpu::testing {

// A schedule and what of its buffers is compared, in the order of the other form's.
struct Form {
  TestSchedule schedule;
  std::vector<BufferId> plain = {}, quantized = {}, integers = {};
};

// make(fused): the launch with its fields, or the launches that it stands for.
inline void expect_fused_equals_apart(const std::function<Form(bool fused)>& make) {
  const Form apart = make(false), fused = make(true);
  ASSERT_EQ(apart.plain.size(), fused.plain.size());
  ASSERT_EQ(apart.quantized.size(), fused.quantized.size());
  const RunResult want = apart.schedule.run(Isa::Scalar, 1);
  const auto compare = [&](const Form& form, const RunResult& got, const char* which) {
    for (size_t i = 0; i < form.plain.size(); ++i)
      EXPECT_TRUE(same_bits(got.plain(form.plain[i]), want.plain(apart.plain[i]))) << which << " result " << i;
    for (size_t i = 0; i < form.quantized.size(); ++i)
      EXPECT_TRUE(got.quantized(form.quantized[i]) == want.quantized(apart.quantized[i]))
          << which << " quantized result " << i;
    for (size_t i = 0; i < form.integers.size(); ++i)
      EXPECT_EQ(got.integers(form.integers[i]), want.integers(apart.integers[i])) << which << " integers " << i;
  };
  for (const Isa isa : kIsas) {
    if (!supported(isa)) continue;
    for (const uint32_t threads : {1, 2, 3}) {
      SCOPED_TRACE(std::string(name(isa)) + ", " + std::to_string(threads) + " threads");
      if (threads == 2) compare(apart, apart.schedule.run(isa, threads), "apart");
      compare(fused, fused.schedule.run(isa, threads), "fused");
    }
  }
}

// Values that f16 holds exactly.
inline std::vector<float> half_values(uint64_t count, uint64_t seed) {
  std::vector<float> values = test_values(count, seed);
  for (float& x : values) x = f16_to_f32(f32_to_f16(x));
  return values;
}

// A cache of `rows` positions in every layout and type that results may land in.
struct CacheForm {
  lane::Layout::Kind kind;
  Dtype dtype;
};
inline constexpr CacheForm kCacheForms[] = {
    {lane::Layout::Kind::RowMajor, Dtype::F32},  {lane::Layout::Kind::RowMajor, Dtype::F16},
    {lane::Layout::Kind::KeyBlocks, Dtype::F16}, {lane::Layout::Kind::KeyBlocks, Dtype::F32},
    {lane::Layout::Kind::ValueRows, Dtype::F16}, {lane::Layout::Kind::ValueRows, Dtype::BF16}};
inline BufferId cache(TestSchedule& schedule, const std::string& name, CacheForm form, uint64_t rows, uint32_t heads,
                      uint32_t width) {
  const lane::Layout layout =
      form.kind == lane::Layout::Kind::RowMajor ? lane::Layout{} : lane::Layout{form.kind, heads, width};
  return schedule.state(name, rows, uint64_t{heads} * width, form.dtype, layout);
}

}  // namespace tw::lane::cpu::testing
