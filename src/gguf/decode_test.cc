#include "gguf/decode.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <set>

#include "gguf/block_test_data.h"

namespace tw::gguf {
namespace {

constexpr uint16_t kOne = 0x3c00;   // binary16
constexpr uint16_t kHalf = 0x3800;  // binary16

template <class Block>
std::vector<double> values_of(const Block& block) {
  std::array<std::byte, sizeof(Block)> bytes;
  std::memcpy(bytes.data(), &block, sizeof block);
  std::vector<double> out(Block::kValues);
  dequantize_exact(Block::kFormat, bytes.data(), out.data(), out.size());
  return out;
}

// Every value is `rest` but those named.
template <class Block>
void expect_values(const Block& block, double rest, const std::map<size_t, double>& named) {
  const std::vector<double> values = values_of(block);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], named.contains(i) ? named.at(i) : rest) << name(Block::kFormat) << " value " << i;
}

TEST(DecodeByHand, Q4_0) {
  BlockQ4_0 block{.d = kHalf, .qs = {}};
  block.qs[0] = 0x1f;
  block.qs[15] = 0x80;
  expect_values(block, -4.0, {{0, 3.5}, {16, -3.5}, {31, 0.0}});
}

TEST(DecodeByHand, Q4_1) {
  BlockQ4_1 block{.d = kHalf, .m = 0xbc00, .qs = {}};
  block.qs[3] = 0x2f;
  expect_values(block, -1.0, {{3, 6.5}, {19, 0.0}});
}

TEST(DecodeByHand, Q5_0) {
  BlockQ5_0 block{.d = kOne, .qh = {0x01, 0, 0, 0x80}, .qs = {}};
  block.qs[0] = 0x0f;
  block.qs[15] = 0x30;
  expect_values(block, -16.0, {{0, 15.0}, {31, 3.0}});
}

TEST(DecodeByHand, Q5_1) {
  BlockQ5_1 block{.d = kOne, .m = kHalf, .qh = {0, 0x02, 0, 0}, .qs = {}};
  block.qs[9] = 0x4f;
  expect_values(block, 0.5, {{9, 31.5}, {25, 4.5}});
}

TEST(DecodeByHand, Q8_0AndQ8_K) {
  BlockQ8_0 small{.d = kHalf, .qs = {}};
  small.qs[0] = -128;
  small.qs[31] = 127;
  expect_values(small, 0.0, {{0, -64.0}, {31, 63.5}});
  BlockQ8_K large{.d = 3.0f, .qs = {}, .bsums = {}};
  large.qs[255] = -128;
  large.qs[32] = 5;
  expect_values(large, 0.0, {{255, -384.0}, {32, 15.0}});
}

TEST(DecodeByHand, IQ4_NL) {
  BlockIQ4_NL block{.d = kOne, .qs = {}};
  block.qs[2] = 0xf8;
  expect_values(block, -127.0, {{2, 1.0}, {18, 113.0}});
}

TEST(DecodeByHand, MXFP4) {
  BlockMXFP4 block{.e = 127, .qs = {}};
  const uint8_t nibbles[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  std::memcpy(block.qs, nibbles, sizeof nibbles);
  expect_values(block, 0.0,
                {{1, 1.0},
                 {2, 2.0},
                 {3, 4.0},
                 {5, -1.0},
                 {6, -2.0},
                 {7, -4.0},  // low nibbles
                 {16, 0.5},
                 {17, 1.5},
                 {18, 3.0},
                 {19, 6.0},
                 {21, -1.5},
                 {22, -3.0},
                 {23, -6.0},
                 {20, -0.5}});
  for (int e : {0, 1, 2, 254, 255}) {
    block.e = static_cast<uint8_t>(e);
    EXPECT_EQ(values_of(block)[19], std::ldexp(6.0, e - 127)) << e;
  }
}

TEST(DecodeByHand, NVFP4) {
  // 1.0 is exponent 7; the smallest subnormal is 2^-9; 448 is the largest number; 0x7f stands for nothing.
  BlockNVFP4 block{.d = {7 << 3, 1, 0x7e, 0x7f}, .qs = {}};
  for (uint8_t& byte : block.qs) byte = 0xa2;
  const std::vector<double> values = values_of(block);
  const double scales[] = {1.0, 0x1p-9, 448.0, 0.0};
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], scales[i / 16] * (i % 16 < 8 ? 1.0 : -1.0)) << i;
}

TEST(DecodeByHand, Q2_K) {
  BlockQ2_K block{.scales = {}, .qs = {}, .d = kOne, .dmin = kHalf};
  for (uint8_t& scale : block.scales) scale = 0x21;  // scale 1, min 2
  block.scales[7] = 0xf3;                            // values 112..127: scale 3, min 15
  block.qs[31] = 0x80 | 0x03;                        // values 31 (3), 63, 95 (0), 127 (2)
  std::map<size_t, double> named = {{31, 2.0}};
  for (size_t i = 112; i < 127; ++i) named[i] = -7.5;
  named[127] = 6.0 - 7.5;
  expect_values(block, -1.0, named);
}

TEST(DecodeByHand, Q3_K) {
  BlockQ3_K block{.hmask = {}, .qs = {}, .scales = {}, .d = kOne};
  // All scales 33, that is 1: low nibbles 1, high bits 2.
  std::memset(block.scales, 0x11, 8);
  std::memset(block.scales + 8, 0xaa, 4);
  block.hmask[5] = 0x81;       // values 5 and 229
  block.qs[32 + 5] = 0xc0;     // value 229
  block.scales[8 + 3] = 0x6a;  // scale 15 loses its bit 5 and gains its bit 4: 17, that is -15
  std::map<size_t, double> named = {{5, 0.0}, {229, 3.0}};
  for (size_t i = 240; i < 256; ++i) named[i] = 60.0;
  expect_values(block, -4.0, named);
}

TEST(DecodeByHand, Q4_KAndQ5_K) {
  BlockQ4_K four{.d = kOne, .dmin = kHalf, .scales = {}, .qs = {}};
  four.scales[1] = 5 | (2 << 6);      // scale of run 1; high bits of the scale of run 5
  four.scales[5] = 7 | (1 << 6);      // min of run 1; high bits of the min of run 5
  four.scales[9] = 0x3 | (0x4 << 4);  // run 5: scale 2 * 16 + 3, min 1 * 16 + 4
  four.qs[0] = 0x9f;                  // value 0 (run 0, scale 0) and value 32
  four.qs[64 + 31] = 0xe1;            // value 128 + 31 and value 160 + 31
  std::map<size_t, double> named;
  for (size_t j = 0; j < 32; ++j) {
    named[32 + j] = -3.5;
    named[160 + j] = -10.0;
  }
  named[32] = 45.0 - 3.5;
  named[191] = 35.0 * 14.0 - 10.0;
  expect_values(four, 0.0, named);

  BlockQ5_K five{.d = kOne, .dmin = kHalf, .scales = {}, .qh = {}, .qs = {}};
  std::memcpy(five.scales, four.scales, sizeof five.scales);
  std::memcpy(five.qs, four.qs, sizeof five.qs);
  five.qh[31] = 1 << 5;
  five.qh[2] = 1 << 1;
  named[191] = 35.0 * 30.0 - 10.0;
  named[34] = 80.0 - 3.5;
  expect_values(five, 0.0, named);
}

TEST(DecodeByHand, Q6_K) {
  BlockQ6_K block{.ql = {}, .qh = {}, .scales = {}, .d = kHalf};
  for (int8_t& scale : block.scales) scale = 2;
  block.scales[15] = -128;
  block.ql[0] = 0x21;        // values 0 and 64
  block.ql[64 + 33] = 0x0f;  // value 128 + 33
  block.qh[0] = 0x31;        // value 0: 1, value 64: 3
  block.qh[32 + 1] = 0x0c;   // value 161: 3
  std::map<size_t, double> named = {{0, -15.0}, {64, 18.0}, {161, 31.0}};
  for (size_t i = 240; i < 256; ++i) named[i] = 2048.0;
  expect_values(block, -32.0, named);
}

TEST(DecodeByHand, TernaryFormats) {
  BlockTQ2_0 two{.qs = {}, .d = kHalf};
  two.qs[32] = 0x81;  // values 128 (0) and 224 (1)
  expect_values(two, -0.5, {{128, 0.0}, {224, 0.5}});
  BlockTQ1_0 one{.qs = {}, .qh = {}, .d = kOne};
  one.qs[1] = 220;   // 2 1 2 0 1 is 208, ceil(208 * 256 / 243) = 220: values 1, 33, 65, 97, 129
  one.qs[47] = 220;  // values 175, 191, 207, 223, 239
  one.qh[3] = 220;   // values 243, 247, 251, 255; the fifth digit is not used
  expect_values(one, -1.0,
                {{1, 1.0},
                 {33, 0.0},
                 {65, 1.0},
                 {129, 0.0},
                 {175, 1.0},
                 {191, 0.0},
                 {207, 1.0},
                 {239, 0.0},
                 {243, 1.0},
                 {247, 0.0},
                 {251, 1.0}});
}

TEST(DecodeByHand, IQ4_XS) {
  BlockIQ4_XS block{.d = kOne, .scales_h = 0xaaaa, .scales_l = {0x11, 0x11, 0x11, 0xf1}, .qs = {}};
  block.scales_h = 0x2aaa;  // run 7: 0xf, that is 15 - 32 = -17; the others 33 - 32 = 1
  block.qs[16] = 0x0f;      // value 32
  std::map<size_t, double> named = {{32, 113.0}};
  for (size_t i = 224; i < 256; ++i) named[i] = -127.0 * -17.0;
  expect_values(block, -127.0, named);
}

TEST(DecodeByHand, IQ2Formats) {
  // Entry 0 of the three grids is eight times 8; entry 1 has 43 first.
  BlockIQ2_XXS xxs{.d = kOne, .qs = {}};
  xxs.qs[8 + 1] = 1;     // run 1, second index
  xxs.qs[8 + 5] = 0x01;  // bit 8 of its signs: bit 1 of the second code, so values 1 and, by parity, 7 of that eight
  xxs.qs[8 + 7] = 0x30;  // scale 3
  std::map<size_t, double> named;
  for (size_t i = 32; i < 64; ++i) named[i] = 7.0;
  named[40] = 43.0 / 8.0 * 7.0;
  named[41] = -7.0;
  named[47] = -7.0;
  expect_values(xxs, 1.0, named);

  BlockIQ2_XS xs{.d = kOne, .qs = {}, .scales = {}};
  xs.qs[31] = 1 | (1 << 9);  // the last eight: index 1, values 0 and 7 negative
  xs.scales[7] = 0x50;       // last sixteen: scale 5
  named.clear();
  for (size_t i = 240; i < 256; ++i) named[i] = 11.0;
  named[248] = -43.0 / 8.0 * 11.0;
  named[255] = -11.0;
  expect_values(xs, 1.0, named);

  BlockIQ2_S s{.d = kOne, .qs = {}, .signs = {}, .qh = {}, .scales = {}};
  s.qs[31] = 1;
  s.signs[31] = 0x01;  // no parity: one sign stands alone
  s.scales[7] = 0x50;
  named[255] = 11.0;
  expect_values(s, 1.0, named);
}

TEST(DecodeByHand, IQ3Formats) {
  // Entry 0 of the XXS grid is four times 4, of the S grid four times 1; entry 1 of the XXS grid starts with 20, of the
  // S grid with 3.
  BlockIQ3_XXS xxs{.d = kOne, .qs = {}, .scales_and_signs = {}};
  xxs.qs[63] = 1;                   // values 252..255
  xxs.scales_and_signs[31] = 0x22;  // scale 2; bit 25: the fourth code is 0b0010000, value 4 of the eight, and 7
  std::map<size_t, double> named;
  for (size_t i = 224; i < 256; ++i) named[i] = 5.0;
  named[252] = -25.0;
  named[255] = -5.0;
  expect_values(xxs, 1.0, named);

  BlockIQ3_S s{.d = kOne, .qs = {}, .qh = {}, .signs = {}, .scales = {}};
  s.qs[63] = 1;
  s.signs[31] = 0x10;
  s.scales[3] = 0x20;
  for (size_t i = 224; i < 256; ++i) named[i] = 5.0;
  named[252] = -15.0;
  expect_values(s, 1.0, named);
}

TEST(DecodeByHand, IQ1Formats) {
  // Entry 0 of the grid is eight times -1; entry 1 starts with 1.
  BlockIQ1_S s{.d = kOne, .qs = {}, .qh = {}};
  s.qs[31] = 1;
  s.qh[7] = static_cast<uint16_t>(0x8000 | (2 << 12));  // run 7: delta -1/8, scale 2
  std::map<size_t, double> named;
  for (size_t i = 224; i < 256; ++i) named[i] = -1.125 * 5.0;
  named[248] = 0.875 * 5.0;
  expect_values(s, -0.875, named);

  BlockIQ1_M m{.qs = {}, .qh = {}, .scales = {0, 0, 0xc000, 0x3000}};  // d = 0x3c00
  m.qs[31] = 1;
  m.qh[15] = 0x80;                                         // the last eight: delta -1/8
  m.scales[3] = static_cast<uint16_t>(0x3000 | (2 << 9));  // last sixteen: scale 2
  named.clear();
  for (size_t i = 240; i < 248; ++i) named[i] = -0.875 * 5.0;
  for (size_t i = 248; i < 256; ++i) named[i] = -1.125 * 5.0;
  named[248] = 0.875 * 5.0;
  expect_values(m, -0.875, named);
}

struct Vector {
  Format format;
  uint64_t fingerprint;
};

// Of 64 random blocks, seeded by the format's id plus one, as an independent implementation of the formats widens them.
constexpr Vector kVectors[] = {
    {Format::F16, 0xaed46f9bd728827f},     {Format::BF16, 0x7294a668911cedd2},   {Format::Q4_0, 0x2d6b8c382979d783},
    {Format::Q4_1, 0x0bb6f0d70336cb2a},    {Format::Q5_0, 0xb69d7445b9448892},   {Format::Q5_1, 0xade71f2586e9cb3a},
    {Format::Q8_0, 0xddcc0c91657efa49},    {Format::Q2_K, 0xdd962beedbc49c87},   {Format::Q3_K, 0x04a220520c2d40ed},
    {Format::Q4_K, 0x2739f97cead1e209},    {Format::Q5_K, 0x30abe035530b4cb2},   {Format::Q6_K, 0xddd780b69114ba0c},
    {Format::Q8_K, 0xa2f5325bfc714468},    {Format::IQ1_S, 0x5c702a84a97e7dde},  {Format::IQ1_M, 0x68532f41b22a6539},
    {Format::IQ2_XXS, 0xb6dc692eeb76039c}, {Format::IQ2_XS, 0x9abe2da29c335569}, {Format::IQ2_S, 0x6b4b1a07c3357569},
    {Format::IQ3_XXS, 0xb04f5ec80afa150d}, {Format::IQ3_S, 0xe47358ac4c43ffa1},  {Format::IQ4_NL, 0x8030443800be40a5},
    {Format::IQ4_XS, 0x59f85b2838817553},  {Format::TQ1_0, 0x0db926dc8b50ca76},  {Format::TQ2_0, 0x5696d16a2416d42b},
    {Format::MXFP4, 0x7f78f3f7b74f9774},   {Format::NVFP4, 0x66ea4da9f0ea1ea5},
};

TEST(Dequantize, EveryBitEqualsAnIndependentImplementation) {
  std::set<Format> covered;
  for (const Vector& vector : kVectors) {
    const FormatInfo& entry = info(vector.format);
    const std::vector<std::byte> blocks = random_blocks(vector.format, 64, entry.id + 1);
    std::vector<float> values(64 * entry.block);
    dequantize(vector.format, blocks.data(), values.data(), values.size());
    EXPECT_EQ(fingerprint(values), vector.fingerprint) << entry.name;
    covered.insert(vector.format);
  }
  for (const FormatInfo& entry : all_formats())
    EXPECT_TRUE(entry.block == 1 || covered.contains(entry.format)) << entry.name;
}

class EveryBlockFormat : public testing::TestWithParam<Format> {
 protected:
  [[nodiscard]] Format format() const { return GetParam(); }
};

bool same_number(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST_P(EveryBlockFormat, IsTheFormulaOverItsRuns) {
  const uint64_t values = info(format()).block * 300;
  const std::vector<std::byte> blocks = random_blocks(format(), 300, 11);
  std::vector<double> exact(values);
  dequantize_exact(format(), blocks.data(), exact.data(), values);
  std::vector<IntRun> runs(values / 32);
  decode_runs(format(), blocks.data(), 0, runs);
  for (uint64_t i = 0; i < values; ++i) {
    const IntRun& run = runs[i / 32];
    const size_t h = i / 16 % 2;
    const double value =
        static_cast<double>(run.d[h]) * run.sc[h] * run.q[i % 32] - static_cast<double>(run.dmin) * run.m[h];
    ASSERT_TRUE(same_number(exact[i], value)) << name(format()) << " value " << i;
  }
}

TEST_P(EveryBlockFormat, RunsKeepTheirForm) {
  std::vector<IntRun> runs(info(format()).block * 300 / 32);
  decode_runs(format(), random_blocks(format(), 300, 12).data(), 0, runs);
  const RunForm form = run_form(format());
  bool scales_differ = false;
  bool bases_differ = false;
  bool has_min = false;
  for (const IntRun& run : runs) {
    for (size_t h = 0; h < 2; ++h) {
      EXPECT_LE(std::abs(run.sc[h]), 128);
      EXPECT_LE(std::abs(run.m[h]), 63);
    }
    scales_differ |= run.sc[0] != run.sc[1];
    bases_differ |= std::bit_cast<uint32_t>(run.d[0]) != std::bit_cast<uint32_t>(run.d[1]);
    has_min |= run.m[0] != 0 || run.m[1] != 0;
    EXPECT_TRUE(form != RunForm::ScaleMin || run.m[0] == run.m[1]);
  }
  EXPECT_EQ(scales_differ, form == RunForm::HalfScales || form == RunForm::HalfScalesMin) << name(format());
  EXPECT_EQ(bases_differ, form == RunForm::HalfBases) << name(format());
  EXPECT_EQ(has_min, form == RunForm::ScaleMin || form == RunForm::HalfScalesMin) << name(format());
}

TEST_P(EveryBlockFormat, RunsMayBeTakenOneByOneFromAnyAddress) {
  using Bytes = std::array<std::byte, sizeof(IntRun)>;  // a scale may be a NaN
  const std::vector<std::byte> blocks = random_blocks(format(), 5, 13);
  std::vector<std::byte> shifted(blocks.size() + 1);
  std::memcpy(shifted.data() + 1, blocks.data(), blocks.size());
  std::vector<IntRun> all(info(format()).block * 5 / 32);
  decode_runs(format(), blocks.data(), 0, all);
  for (uint64_t r = 0; r < all.size(); ++r) {
    IntRun run;
    decode_runs(format(), shifted.data() + 1, r, {&run, 1});
    EXPECT_EQ(std::bit_cast<Bytes>(run), std::bit_cast<Bytes>(all[r])) << r;
  }
}

TEST_P(EveryBlockFormat, WideningToF32RoundsTheExactValue) {
  const uint64_t values = info(format()).block * 3000;
  const std::vector<std::byte> blocks = random_blocks(format(), 3000, 14);
  std::vector<float> narrow(values);
  std::vector<double> exact(values);
  dequantize(format(), blocks.data(), narrow.data(), values);
  dequantize_exact(format(), blocks.data(), exact.data(), values);
  for (uint64_t i = 0; i < values; ++i)
    ASSERT_TRUE(same_number(narrow[i], static_cast<float>(exact[i]))) << name(format()) << " value " << i;
}

std::vector<Format> block_formats() {
  std::vector<Format> formats;
  for (const FormatInfo& entry : all_formats())
    if (is_quantized(entry.format)) formats.push_back(entry.format);
  return formats;
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryBlockFormat, testing::ValuesIn(block_formats()),
                         [](const auto& param) { return std::string(name(param.param)); });

TEST(Blocks, TableAndStructsAgree) {
  const auto agree = []<class... Blocks>(std::tuple<Blocks...>*) {
    (
        [] {
          EXPECT_EQ(info(Blocks::kFormat).block, Blocks::kValues) << name(Blocks::kFormat);
          EXPECT_EQ(info(Blocks::kFormat).block_bytes, sizeof(Blocks)) << name(Blocks::kFormat);
        }(),
        ...);
    return sizeof...(Blocks);
  };
  EXPECT_EQ(agree(static_cast<BlockTypes*>(nullptr)), block_formats().size());
  for (const FormatInfo& entry : all_formats()) EXPECT_EQ(is_quantized(entry.format), entry.block > 1) << entry.name;
}

template <class Element>
void expect_elements(Format format, const std::vector<Element>& elements) {
  const auto* bytes = reinterpret_cast<const std::byte*>(elements.data());
  std::vector<float> narrow(elements.size());
  std::vector<double> exact(elements.size());
  dequantize(format, bytes, narrow.data(), elements.size());
  dequantize_exact(format, bytes, exact.data(), elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    EXPECT_TRUE(same_number(narrow[i], static_cast<float>(elements[i]))) << name(format) << " " << i;
    EXPECT_TRUE(same_number(exact[i], static_cast<double>(elements[i]))) << name(format) << " " << i;
  }
}

TEST(Dequantize, PlainElementsAreConverted) {
  expect_elements<float>(Format::F32, {0.1f, -0.0f, INFINITY, NAN, 1e-45f});
  expect_elements<double>(Format::F64, {0.1, 1.0 + 0x1p-30, -1e300, 5e-324, NAN});
  expect_elements<int8_t>(Format::I8, {-128, 0, 127});
  expect_elements<int16_t>(Format::I16, {-32768, 0, 32767});
  expect_elements<int32_t>(Format::I32, {INT32_MIN, 16777217, INT32_MAX});
  expect_elements<int64_t>(Format::I64, {INT64_MIN, (int64_t{1} << 53) + 1, (int64_t{1} << 54) + (1 << 30) + 1});
}

TEST(Dequantize, AnInfiniteScaleIsInfiniteOrNoNumber) {
  BlockQ8_0 block{.d = 0x7c00, .qs = {}};
  block.qs[1] = 1;
  block.qs[2] = -1;
  const std::vector<double> values = values_of(block);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], INFINITY);
  EXPECT_EQ(values[2], -INFINITY);
}

TEST(Dequantize, SubnormalScalesAreExact) {
  BlockQ6_K block{.ql = {}, .qh = {}, .scales = {}, .d = 0x0001};
  block.scales[0] = -128;
  const std::vector<double> values = values_of(block);
  EXPECT_EQ(values[0], 0x1p-24 * 4096.0);
  EXPECT_EQ(values[16], 0.0);
}

TEST(Dequantize, PartOfABlockIsABug) {
  std::vector<std::byte> bytes(18);
  std::vector<float> out(32);
  EXPECT_DEATH(dequantize(Format::Q4_0, bytes.data(), out.data(), 31), "31 values");
  IntRun run;
  EXPECT_DEATH(decode_runs(Format::F32, bytes.data(), 0, {&run, 1}), "F32 has no runs");
}

}  // namespace
}  // namespace tw::gguf
