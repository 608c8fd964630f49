#include "lane/cpu/pack.h"

#include <gtest/gtest.h>

#include "lane/cpu/product_test_data.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

// Bits a weight that packing adds: formats whose file holds indices of a grid, or digits, have them spelt out.
double added_bits(Format format) {
  switch (format) {
    case Format::TQ1_0: return 0.375;
    case Format::IQ1_S: return 0.75;
    case Format::IQ1_M: return 0.8125;
    case Format::IQ2_XXS:
    case Format::IQ2_XS:
    case Format::IQ3_XXS: return 1.25;
    case Format::IQ2_S: return 1;
    case Format::IQ3_S: return 0.875;
    default: return 0.125;
  }
}

TEST(Pack, TakesHardlyMoreBytesThanTheFile) {
  for (const WeightFormat& entry : weight_formats()) {
    const double file = static_cast<double>(gguf::bytes_of(entry.format, 4096)) / 512;
    const double packed = static_cast<double>(packed_bytes(entry.format, 160, 4096)) / (160 * 512);
    EXPECT_LE(packed, file + added_bits(entry.format)) << gguf::name(entry.format);
  }
}

TEST(Pack, LayoutsHaveTheTermsOfTheirFormats) {
  for (const WeightFormat& entry : weight_formats())
    if (is_run(entry.layout)) {
      EXPECT_EQ(run_shape(entry.layout).term(), describe(entry.format, 16, 256).term) << gguf::name(entry.format);
    }
}

TEST(Pack, KnowsEveryBlockFormatAndNoIntegers) {
  EXPECT_TRUE(is_weight_format(Format::NVFP4));
  EXPECT_TRUE(is_weight_format(Format::BF16));
  EXPECT_FALSE(is_weight_format(Format::I32));
  EXPECT_FALSE(is_weight_format(Format::F64));
}

TEST(Pack, RangesOfPanelsAddUpAndStayWithinTheirBytes) {
  for (const WeightFormat& entry : weight_formats()) {
    TestRows rows(entry.format, 2 * 21, 512, 3);
    const Packed shape = describe(entry.format, 21, 512, 2);
    ASSERT_EQ(shape.panels(), 4U);
    const TestMemory whole(shape.bytes()), pieces(shape.bytes());
    std::fill_n(pieces.data(), shape.bytes() + 1, std::byte{0xa5});
    pack(rows.rows(), shape, whole.data(), 0, 4);
    for (const uint64_t panel : {3, 1, 0, 2}) pack(rows.rows(), shape, pieces.data(), panel, panel + 1);
    EXPECT_TRUE(std::equal(whole.data(), whole.data() + shape.bytes(), pieces.data())) << gguf::name(entry.format);
    EXPECT_EQ(pieces.data()[shape.bytes()], std::byte{0xa5});
  }
}

TEST(Pack, FollowsTheOrderOfTheStoredRows) {
  for (const Format format : {Format::Q4_K, Format::Q3_K, Format::F16}) {
    TestRows rows(format, 18, 256, 5);
    const Packed shape = describe(format, 18, 256);
    const TestMemory plain(shape.bytes()), ordered(shape.bytes());
    std::vector<uint32_t> order(18);
    for (uint32_t r = 0; r < 18; ++r) order[r] = (r * 5 + 3) % 18;
    std::vector<std::byte> moved(18 * rows.rows().row_bytes);
    for (uint32_t r = 0; r < 18; ++r)
      std::copy_n(rows.rows().row(order[r]), rows.rows().row_bytes, moved.data() + r * rows.rows().row_bytes);
    graph::Rows other = rows.rows();
    other.data = moved.data();
    pack(other, shape, plain.data(), 0, shape.panels());
    rows.rows().order = order;
    pack(rows.rows(), shape, ordered.data(), 0, shape.panels());
    EXPECT_TRUE(std::equal(plain.data(), plain.data() + shape.bytes(), ordered.data())) << gguf::name(format);
  }
}

}  // namespace
}  // namespace tw::lane::cpu
