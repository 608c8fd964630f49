#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tw {
namespace {

// The number that the bits of a small float stand for, by the definition: (-1)^s * 2^(e - bias) * (1 + m / 2^bits).
double by_definition(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1u << mantissa_bits) - 1u), -mantissa_bits);
  const double sign = bits >> (exponent_bits + mantissa_bits) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction == 0.0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1.0 + fraction, exponent - bias);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

TEST(Half, WideningFollowsTheDefinitionForEveryPattern) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    ASSERT_TRUE(same(f16_to_f32(half), by_definition(bits, 5, 10))) << bits;
    ASSERT_TRUE(same(bf16_to_f32(half), by_definition(bits, 8, 7))) << bits;
  }
}

TEST(Half, NarrowingGivesBackEveryPattern) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float f16 = f16_to_f32(half);
    const float bf16 = bf16_to_f32(half);
    if (std::isnan(f16))
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(f16)))) << bits;
    else
      ASSERT_EQ(f32_to_f16(f16), bits);
    if (std::isnan(bf16))
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(bf16)))) << bits;
    else
      ASSERT_EQ(f32_to_bf16(bf16), bits);
  }
}

// Between neighbours a < b: their middle goes to the even pattern, the floats beside the middle to the nearer one.
template <uint16_t (*narrow)(float), float (*widen)(uint16_t)>
void check_rounding(uint32_t first_infinity) {
  for (uint32_t bits = 0; bits + 1 < first_infinity; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const double exact = 0.5 * (static_cast<double>(widen(low)) + static_cast<double>(widen(high)));
    const auto middle = static_cast<float>(exact);
    ASSERT_EQ(static_cast<double>(middle), exact);
    const float inf = std::numeric_limits<float>::infinity();
    ASSERT_EQ(narrow(middle), bits % 2 == 0 ? low : high) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, -inf)), low) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, inf)), high) << bits;
    ASSERT_EQ(narrow(-middle), (bits % 2 == 0 ? low : high) | 0x8000u) << bits;
  }
}

TEST(Half, NarrowingRoundsToNearestEven) {
  check_rounding<f32_to_f16, f16_to_f32>(0x7c00);
  check_rounding<f32_to_bf16, bf16_to_f32>(0x7f80);
}

TEST(Half, NarrowingPastTheLargestNumberIsInfinity) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f32_to_bf16(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(Half, NarrowingKeepsANanANan) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xff80ffffu, 0xffffffffu}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(nan)))) << bits;
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(nan)))) << bits;
    EXPECT_EQ(f32_to_f16(nan) >> 15, bits >> 31);
    EXPECT_EQ(f32_to_bf16(nan) >> 15, bits >> 31);
  }
}

TEST(Half, NarrowingIsMonotone) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const float a = std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x7fffffffu);
    const float b = std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x7fffffffu);
    if (!(a <= b)) continue;
    ASSERT_LE(f32_to_f16(a), f32_to_f16(b)) << a << " " << b;
    ASSERT_LE(f32_to_bf16(a), f32_to_bf16(b)) << a << " " << b;
  }
}

}  // namespace
}  // namespace tw
