#include "spatial/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tw::spatial {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Precision, NamesReadBack) {
  for (int i = 0; i < kPrecisions; ++i)
    EXPECT_EQ(parse_precision(name(static_cast<Precision>(i))), static_cast<Precision>(i));
  EXPECT_FALSE(parse_precision("f64").has_value());
}

TEST(Precision, IntegersHoldWhatTheySay) {
  EXPECT_EQ(int_max(Precision::I8), 127);
  EXPECT_EQ(int_max(Precision::I64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(smallest_integer(127), Precision::I8);
  EXPECT_EQ(smallest_integer(128), Precision::I16);
  EXPECT_EQ(smallest_integer(40000), Precision::I32);
  EXPECT_EQ(smallest_integer(uint64_t{1} << 40), Precision::I64);
}

TEST(Precision, Bf16RoundsToNearestEvenOnce) {
  EXPECT_EQ(round_to(Precision::Bf16, 257.0), 256.0);  // a tie, down to even
  EXPECT_EQ(round_to(Precision::Bf16, 259.0), 260.0);  // a tie, up to even
  // Just above a tie, by less than a float can say: two roundings would fall back to the tie.
  EXPECT_EQ(round_to(Precision::Bf16, 257.0 + 0x1p-40), 258.0);
  EXPECT_EQ(round_to(Precision::F16, 2049.0 + 0x1p-40), 2050.0);
  EXPECT_EQ(round_to(Precision::F16, 65520.0), kInf);
  EXPECT_EQ(round_to(Precision::F32, 1e300), kInf);
  EXPECT_TRUE(std::isnan(round_to(Precision::Bf16, kNan)));
  EXPECT_TRUE(std::signbit(round_to(Precision::Bf16, -0.0)));
}

TEST(Precision, FixedPointSaturatesAndHasNoNan) {
  EXPECT_EQ(round_to(Precision::Fx16, 1.5), 1.5);
  EXPECT_EQ(round_to(Precision::Fx16, 3.0 / 512), 4.0 / 512);  // a tie between 1/256 and 2/256, to even
  EXPECT_EQ(round_to(Precision::Fx16, 1e9), 128.0 - 1.0 / 256);
  EXPECT_EQ(round_to(Precision::Fx16, -kInf), -128.0);
  EXPECT_EQ(round_to(Precision::Fx16, kNan), 0.0);
  EXPECT_EQ(round_to(Precision::Fx32, 32767.0 + 1.0 / 65536), 32767.0 + 1.0 / 65536);  // more than a float holds
}

}  // namespace
}  // namespace tw::spatial
