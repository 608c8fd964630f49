#include "lane/cpu/gather_rows.h"

#include <gtest/gtest.h>

#include "gguf/decode.h"
#include "lane/cpu/product_test_data.h"

namespace tw::lane::cpu {
namespace {

// As docs/numerics.md writes it: fma(d * sc, q, -(dmin * m)), then the scale.
float value_of(const gguf::IntRun& run, uint32_t i, float scale) {
  const uint32_t half = i / 16;
  const float d = run.d[half] * static_cast<float>(run.sc[half]);
  return scale * std::fma(d, static_cast<float>(run.q[i]), -(run.dmin * static_cast<float>(run.m[half])));
}

TEST(GatherRows, RoundsEachValueOfAnyFormatOnceAndScalesIt) {
  for (const WeightFormat& entry : weight_formats()) {
    if (!gguf::is_quantized(entry.format)) continue;
    TestRows table(entry.format, 9, 512, 4);
    table.rows().order = {3, 1, 4, 8, 5, 0, 2, 6, 7};
    const int32_t index[] = {9, 1, 4, 4};
    for (const float scale : {1.0F, 0.3F}) {
      std::vector<float> out(4 * 512, -1.0F);
      const GatherRowsArgs args{&table.rows(), index, out.data(), 4, scale};
      gather_rows(args, {1, 4}, nullptr);
      EXPECT_EQ(out[0], -1.0F);
      gather_rows(args, {0, 1}, nullptr);
      for (uint64_t r = 0; r < 4; ++r) {
        std::vector<gguf::IntRun> runs(16);
        gguf::decode_runs(entry.format, table.rows().row(static_cast<uint64_t>(index[r]) - 1), 0, runs);
        for (uint32_t i = 0; i < 512; ++i)
          ASSERT_EQ(out[r * 512 + i], value_of(runs[i / 32], i % 32, scale)) << gguf::name(entry.format) << ' ' << i;
      }
    }
  }
}

}  // namespace
}  // namespace tw::lane::cpu
