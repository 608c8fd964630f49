#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "gguf/block_test_data.h"
#include "gguf/codebooks.h"
#include "gguf/decode.h"
#include "gguf/format.h"

namespace tw::gguf {
namespace {

std::vector<std::byte> quantized(Format format, const std::vector<float>& values) {
  std::vector<std::byte> bytes(bytes_of(format, values.size()));
  quantize(format, values.data(), bytes.data(), values.size());
  return bytes;
}

std::vector<float> dequantized(Format format, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / info(format).block_bytes * info(format).block);
  dequantize(format, bytes.data(), values.data(), values.size());
  return values;
}

std::vector<float> round_trip(Format format, const std::vector<float>& values) {
  return dequantized(format, quantized(format, values));
}

std::vector<float> bell_values(size_t count, uint64_t seed, double scale = 0.03) {
  TestRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(scale * random.bell());
  return values;
}

// Root mean square of a - b over that of b.
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(static_cast<double>(a[i]) - b[i], 2);
    total += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(error / total);
}

// What quantizing and widening bell-shaped values may lose: measured with this data, and 2 % on top.
struct Loss {
  Format format;
  double most;
};
constexpr Loss kLosses[] = {
    {Format::F16, 0.000216},  {Format::BF16, 0.00173}, {Format::Q8_0, 0.0056},  {Format::Q8_K, 0.0071},
    {Format::Q6_K, 0.0173},   {Format::Q5_K, 0.0356},  {Format::Q5_1, 0.0345},  {Format::Q5_0, 0.0410},
    {Format::Q4_K, 0.0720},   {Format::Q4_1, 0.0715},  {Format::Q4_0, 0.0830},  {Format::IQ4_NL, 0.0756},
    {Format::IQ4_XS, 0.0763}, {Format::NVFP4, 0.0870}, {Format::MXFP4, 0.1140}, {Format::Q3_K, 0.1485},
    {Format::Q2_K, 0.2740},   {Format::TQ1_0, 0.4650}, {Format::TQ2_0, 0.4650},
};

TEST(Quantize, LosesNoMoreThanItsBits) {
  const std::vector<float> values = bell_values(256 * 200, 1);
  for (const Loss& loss : kLosses) {
    const double error = relative_error(round_trip(loss.format, values), values);
    EXPECT_LT(error, loss.most) << name(loss.format);
    EXPECT_GT(error, 0.9 * loss.most) << name(loss.format) << " is better than this test knows";
  }
}

TEST(Quantize, IsTheRoundingOfPlainElements) {
  const std::vector<float> values = {0.0f, -0.0f, 1.0f, 0.1f, 65504.0f, 1e-45f, -3.4e38f, INFINITY, NAN};
  const std::vector<float> f32 = round_trip(Format::F32, values);
  EXPECT_EQ(std::memcmp(f32.data(), values.data(), values.size() * sizeof(float)), 0);
  const std::vector<float> f16 = round_trip(Format::F16, values);
  EXPECT_EQ(f16[3], 0x1.998p-4f);
  EXPECT_EQ(f16[6], -INFINITY);
  EXPECT_TRUE(std::isnan(f16[8]));
  EXPECT_EQ(round_trip(Format::BF16, values)[3], 0x1.9ap-4f);
}

class EveryQuantizedFormat : public testing::TestWithParam<Format> {
 protected:
  [[nodiscard]] Format format() const { return GetParam(); }
  [[nodiscard]] size_t block() const { return info(format()).block; }
};

// The integers that the stored codes can take.
std::pair<int, int> integer_range(Format format) {
  switch (format) {
    case Format::Q4_0: return {-8, 7};
    case Format::Q5_0: return {-16, 15};
    case Format::Q6_K: return {-32, 31};
    case Format::Q3_K: return {-4, 3};
    case Format::Q2_K: return {0, 3};
    case Format::Q4_1:
    case Format::Q4_K: return {0, 15};
    case Format::Q5_1:
    case Format::Q5_K: return {0, 31};
    case Format::TQ1_0:
    case Format::TQ2_0: return {-1, 1};
    default: return {-127, 127};
  }
}

std::vector<int> levels_of(Format format) {
  switch (format) {
    case Format::IQ4_NL:
    case Format::IQ4_XS: return {kIq4Levels.begin(), kIq4Levels.end()};
    case Format::MXFP4:
    case Format::NVFP4: return {kFp4Levels.begin(), kFp4Levels.end()};
    default: break;
  }
  const auto [low, high] = integer_range(format);
  std::vector<int> levels;
  for (int level = low; level <= high; ++level) levels.push_back(level);
  return levels;
}

TEST_P(EveryQuantizedFormat, StoresTheNearestLevelOfItsScales) {
  const std::vector<float> values = bell_values(256 * 20, 2);
  const std::vector<std::byte> bytes = quantized(format(), values);
  std::vector<IntRun> runs(values.size() / 32);
  decode_runs(format(), bytes.data(), 0, runs);
  const std::vector<int> levels = levels_of(format());
  for (size_t i = 0; i < values.size(); ++i) {
    const IntRun& run = runs[i / 32];
    const size_t h = i / 16 % 2;
    const double scale = static_cast<double>(run.d[h]) * run.sc[h];
    const double min = static_cast<double>(run.dmin) * run.m[h];
    const auto miss = [&](int level) { return std::fabs(values[i] - (scale * level - min)); };
    double nearest = std::numeric_limits<double>::infinity();
    for (int level : levels) nearest = std::min(nearest, miss(level));
    // The quotient value / scale is rounded, so a value by the middle may go to either side.
    ASSERT_LE(miss(run.q[i % 32]), nearest + 1e-5 * std::fabs(scale)) << name(format()) << " value " << i;
  }
}

TEST_P(EveryQuantizedFormat, ABlockDependsOnItsOwnValuesOnly) {
  const std::vector<float> values = bell_values(4 * block(), 3);
  const std::vector<std::byte> together = quantized(format(), values);
  const size_t bytes = info(format()).block_bytes;
  for (size_t b = 0; b < 4; ++b) {
    const auto first = values.begin() + static_cast<ptrdiff_t>(b * block());
    const std::vector<std::byte> alone = quantized(format(), {first, first + static_cast<ptrdiff_t>(block())});
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + b * bytes, bytes), 0) << b;
  }
}

TEST_P(EveryQuantizedFormat, ZerosStayZeros) {
  const std::vector<float> zeros(block() * 2, 0.0f);
  for (float value : round_trip(format(), zeros)) EXPECT_EQ(value, 0.0f);
  const std::vector<float> vanishing(block(), 1e-45f);
  if (format() == Format::Q8_K) return;  // its scale is binary32
  for (float value : round_trip(format(), vanishing)) EXPECT_EQ(value, 0.0f);
}

TEST_P(EveryQuantizedFormat, AConstantIsKeptToItsScalesPrecision) {
  // How coarse a scale is: a power of two, a number of three mantissa bits, or integers down to four bits.
  const double part = format() == Format::MXFP4 ? 0.2 : format() == Format::NVFP4 ? 0.07 : 0.02;
  for (float constant : {1.0f, -1.0f, 0.01f, -300.0f}) {
    const std::vector<float> values(block(), constant);
    for (float value : round_trip(format(), values)) ASSERT_NEAR(value, constant, part * std::fabs(constant));
  }
}

TEST_P(EveryQuantizedFormat, HugeValuesSaturateAndStayFinite) {
  const float most = std::numeric_limits<float>::max();
  std::vector<float> values(block(), 0.0f);
  values[0] = most;
  values[block() - 1] = -most;
  const std::vector<float> back = round_trip(format(), values);
  const float largest = *std::ranges::max_element(back);
  EXPECT_TRUE(std::isfinite(largest));
  EXPECT_EQ(back[0], largest);
  EXPECT_GT(largest, 1000.0f);
  EXPECT_LE(back[block() - 1], 0.0f);
  for (float value : back) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(EveryQuantizedFormat, NansAreZerosAndInfinitiesTheLargestNumbers) {
  std::vector<float> odd(block(), 0.5f);
  odd[1] = NAN;
  odd[2] = INFINITY;
  odd[block() - 2] = -INFINITY;
  std::vector<float> plain = odd;
  plain[1] = 0.0f;
  plain[2] = std::numeric_limits<float>::max();
  plain[block() - 2] = -std::numeric_limits<float>::max();
  EXPECT_EQ(quantized(format(), odd), quantized(format(), plain));
}

TEST_P(EveryQuantizedFormat, SmallBinary16ScalesAreUsed) {
  if (format() == Format::NVFP4) return;  // its scales end at 2^-9
  // A binary16 scale near 2^-20 has few bits; the search takes account of them.
  const std::vector<float> values = bell_values(block(), 4, 1e-4);
  EXPECT_LT(relative_error(round_trip(format(), values), values), 0.6) << name(format());
}

TEST_P(EveryQuantizedFormat, QuantizingAgainAddsLittle) {
  const std::vector<float> values = bell_values(256 * 20, 5);
  const std::vector<float> once = round_trip(format(), values);
  const double first = relative_error(once, values);
  EXPECT_LE(relative_error(round_trip(format(), once), once), 0.5 * first) << name(format());
}

std::vector<Format> quantized_formats() {
  std::vector<Format> formats;
  for (const FormatInfo& entry : all_formats())
    if (entry.quantizes && is_quantized(entry.format)) formats.push_back(entry.format);
  return formats;
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryQuantizedFormat, testing::ValuesIn(quantized_formats()),
                         [](const auto& param) { return std::string(name(param.param)); });

// Values scale * level + offset of random levels, with both outermost levels present in each 16 values.
std::vector<float> level_values(Format format, double scale, double offset, uint64_t seed) {
  const std::vector<int> levels = levels_of(format);
  const auto [low, high] = std::ranges::minmax(levels);
  TestRandom random(seed);
  std::vector<float> values;
  for (size_t i = 0; i < 256; ++i) {
    const int level = i % 16 == 0 ? high : i % 16 == 9 ? low : levels[random.next() % levels.size()];
    values.push_back(static_cast<float>(scale * level + offset));
  }
  return values;
}

TEST(Quantize, KeepsValuesThatTheFormatHolds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    TestRandom random(seed);
    const double scale = std::ldexp(1024.0 + static_cast<double>(random.next() % 1024), -14);  // a binary16 number
    for (Format format :
         {Format::Q4_0, Format::Q5_0, Format::Q8_0, Format::Q8_K, Format::IQ4_NL, Format::TQ1_0, Format::TQ2_0}) {
      const std::vector<float> values = level_values(format, scale, 0.0, seed);
      EXPECT_EQ(round_trip(format, values), values) << name(format);
    }
    const double offset = -std::ldexp(1024.0 + static_cast<double>(random.next() % 1024), -10);
    for (Format format : {Format::Q4_1, Format::Q5_1}) {
      const std::vector<float> values = level_values(format, scale, offset, seed);
      EXPECT_EQ(round_trip(format, values), values) << name(format);
    }
    // Parts of one scale are the super-block's unit times the largest integer.
    for (Format format : {Format::Q3_K, Format::Q6_K, Format::IQ4_XS}) {
      const std::vector<float> values = level_values(format, 32.0 * scale, 0.0, seed);
      EXPECT_EQ(round_trip(format, values), values) << name(format);
    }
    for (Format format : {Format::MXFP4, Format::NVFP4}) {
      const std::vector<float> values = level_values(format, 0x1p-5, 0.0, seed);
      EXPECT_EQ(round_trip(format, values), values) << name(format);
    }
  }
}

TEST(Quantize, Mxfp4WidensTheScaleWhereThatLosesLess) {
  // 7 is halfway between 6 and the 8 of the doubled scale, and 0.5 needs the finer one.
  std::vector<float> values(32, 0.5f);
  values[0] = 7.0f;
  EXPECT_EQ(round_trip(Format::MXFP4, values)[1], 0.5f);
  EXPECT_EQ(round_trip(Format::MXFP4, values)[0], 6.0f);
  values.assign(32, 7.5f);
  EXPECT_EQ(round_trip(Format::MXFP4, values)[0], 8.0f);
}

TEST(Quantize, SumsOfQ8KFollowItsIntegers) {
  BlockQ8_K block;
  const std::vector<std::byte> bytes = quantized(Format::Q8_K, bell_values(256, 6));
  std::memcpy(&block, bytes.data(), sizeof block);
  for (size_t s = 0; s < 16; ++s) {
    int sum = 0;
    for (size_t j = 0; j < 16; ++j) sum += block.qs[16 * s + j];
    EXPECT_EQ(block.bsums[s], sum) << s;
  }
}

TEST(Quantize, FormatsThatAreOnlyReadAreABug) {
  const std::vector<float> values(256);
  std::vector<std::byte> bytes(2048);
  for (const FormatInfo& entry : all_formats()) {
    if (entry.quantizes) continue;
    EXPECT_DEATH(quantize(entry.format, values.data(), bytes.data(), 256), "is only read") << entry.name;
  }
  EXPECT_DEATH(quantize(Format::Q4_K, values.data(), bytes.data(), 32), "32 values");
}

}  // namespace
}  // namespace tw::gguf
