#include "lane/cpu/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "base/math_contract.h"
#include "gguf/decode.h"
#include "lane/cpu/glu.h"
#include "lane/cpu/kernels.h"
#include "lane/cpu/product_test_data.h"
#include "lane/cpu/reference/product.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

struct ProductOfIsa {
  std::string_view name;
  ProductKernel run;
};
std::vector<ProductOfIsa> products_here() {
  std::vector<ProductOfIsa> kernels;
  for (const Isa isa : kIsas)
    if (supported(isa)) kernels.push_back({name(isa), product_kernel(isa)});
  kernels.push_back({"emulated avx512", product_emulated_avx512});
  return kernels;
}

struct ProductShape {
  uint64_t n, k, m;
};

// A packed matrix and the arguments of its product.
struct Problem {
  Problem(Format format, ProductShape c, int words, bool with_bias = false)
      : rows(format, c.n, c.k, 100 * c.n + c.k),
        input(c.m, c.k, words, 7 * c.m + c.k),
        packed(packed_bytes(format, c.n, c.k)),
        bias(c.n, 0.25F) {
    part.w = describe(format, c.n, c.k);
    pack(rows.rows(), part.w, packed.data(), 0, part.w.panels());
    part.w.data = packed.data();
    if (with_bias) part.bias = bias.data();
    args.rows = c.m;
    args.words = words;
    args.x = input.plain();
    args.x_pitch = c.k;
    args.quant = input.quant();
    args.parts = &part;
    args.part_count = 1;
  }
  // [m][n], run in ranges of `step` panels.
  std::vector<float> run(ProductKernel kernel, uint64_t step = 1000) {
    std::vector<float> y(args.rows * part.w.n, -1.0F);
    part.y = store_rows(y.data(), part.w.n);
    const TestMemory scratch(scratch_bytes(args));
    for (uint64_t begin = 0; begin < items(args); begin += step)
      kernel(args, {begin, std::min(begin + step, items(args))}, scratch.data());
    return y;
  }
  std::vector<float> reference() {
    std::vector<float> y;
    for (uint64_t r = 0; r < args.rows; ++r)
      for (uint64_t o = 0; o < part.w.n; ++o) {
        const float sum = reference::product(rows.rows(), o, args, r);
        y.push_back(part.bias ? sum + part.bias[o] : sum);
      }
    return y;
  }
  TestRows rows;
  TestInput input;
  TestMemory packed;
  std::vector<float> bias;
  ProductPart part;
  ProductArgs args;
};

// The first difference in bits, or "".
std::string difference(const std::vector<float>& got, const std::vector<float>& want) {
  for (size_t i = 0; i < want.size(); ++i)
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(want[i]))
      return fmt::format("value {}: {:a}, expected {:a}", i, got[i], want[i]);
  return "";
}

class ProductOfFormat : public ::testing::TestWithParam<Format> {};

TEST_P(ProductOfFormat, HasTheReferencesBitsOnEveryInstructionSetAndShape) {
  const Format format = GetParam();
  constexpr ProductShape kCases[] = {{1, 256, 1},  {7, 512, 2},   {15, 32, 3},    {16, 64, 5},   {17, 96, 16},
                                     {33, 544, 3}, {100, 256, 2}, {16, 1024, 17}, {33, 1056, 1}, {3, 1280, 33},
                                     {17, 512, 4}, {5, 1056, 15}, {1, 768, 64},   {2, 544, 512}, {50, 768, 67}};
  for (const ProductShape& c : kCases) {
    if (c.k % gguf::info(format).block != 0) continue;
    for (const int words : {0, 1, 2}) {
      Problem problem(format, c, words);
      const std::vector<float> want = problem.reference();
      for (const ProductOfIsa& kernel : products_here())
        ASSERT_EQ(difference(problem.run(kernel.run), want), "")
            << kernel.name << ", words " << words << ", n " << c.n << ", k " << c.k << ", m " << c.m;
    }
  }
}

TEST_P(ProductOfFormat, IsCloseToDoublePrecision) {
  const Format format = GetParam();
  Problem problem(format, {16, 512, 2}, 2);
  const std::vector<float> got = problem.run(product_kernel(best_isa()));
  const bool quantized = gguf::is_quantized(format);
  for (uint64_t r = 0; r < 2; ++r)
    for (uint64_t o = 0; o < 16; ++o) {
      std::vector<double> w(512);
      gguf::dequantize_exact(format, problem.rows.rows().row(o), w.data(), 512);
      double sum = 0, magnitude = 0;
      for (uint64_t t = 0; t < 512; ++t) {
        const uint64_t at = r * 512 + t;
        const double x = quantized
                             ? static_cast<double>(problem.args.quant.scale[at / 32]) * problem.args.quant.wide[at]
                             : static_cast<double>(problem.input.plain()[at]);
        sum += w[t] * x;
        magnitude += std::abs(w[t] * x);
      }
      // A minimum cancels against its values: the two terms' magnitudes can be some times their difference's.
      EXPECT_NEAR(got[r * 16 + o], sum, 0x1p-24 * 80 * 16 * magnitude) << r << ' ' << o;
    }
}

std::vector<Format> formats_of_weights() {
  std::vector<Format> formats;
  for (const WeightFormat& entry : weight_formats()) formats.push_back(entry.format);
  return formats;
}
std::string format_name(const ::testing::TestParamInfo<Format>& format) {
  return std::string(gguf::name(format.param));
}

INSTANTIATE_TEST_SUITE_P(Formats, ProductOfFormat, ::testing::ValuesIn(formats_of_weights()), format_name);

TEST(Product, BitsOfARowDoNotDependOnTheOtherRowsOrTheRanges) {
  for (const Format format : {Format::Q4_K, Format::Q6_K, Format::Q3_K, Format::F16}) {
    Problem problem(format, {50, 768, 9}, 1);
    const std::vector<float> all = problem.run(product_kernel(best_isa()));
    EXPECT_EQ(problem.run(product_kernel(best_isa()), 1), all);
    problem.args.rows = 1;
    const std::vector<float> one = problem.run(product_kernel(best_isa()));
    EXPECT_EQ(one, std::vector<float>(all.begin(), all.begin() + 50));
  }
}

TEST(Product, AddsTheBiasAfterTheSum) {
  Problem problem(Format::Q8_0, {21, 544, 3}, 1, true);
  for (const ProductOfIsa& kernel : products_here())
    EXPECT_EQ(difference(problem.run(kernel.run), problem.reference()), "");
}

TEST(Product, RunsPartsSideBySideWithTheirOwnStrides) {
  Problem a(Format::Q4_K, {20, 256, 2}, 1), b(Format::Q6_K, {33, 256, 2}, 1);
  const std::vector<float> want_a = a.run(product_kernel(best_isa())), want_b = [&] {
    b.args.quant = a.args.quant;
    return b.run(product_kernel(best_isa()));
  }();
  std::vector<float> y(2 * 60, 0.0F);
  ProductPart parts[] = {a.part, b.part};
  parts[0].y = store_rows(y.data(), 60);
  parts[1].y = store_rows(y.data() + 20, 60);
  ProductArgs args = a.args;
  args.parts = parts;
  args.part_count = 2;
  const TestMemory scratch(scratch_bytes(args));
  ASSERT_EQ(items(args), 5U);
  for (uint64_t i = 0; i < 5; i += 2)
    product_kernel(best_isa())(args, {i, std::min<uint64_t>(i + 2, 5)}, scratch.data());
  for (uint64_t r = 0; r < 2; ++r) {
    EXPECT_TRUE(std::equal(want_a.begin() + r * 20, want_a.begin() + (r + 1) * 20, y.begin() + r * 60));
    EXPECT_TRUE(std::equal(want_b.begin() + r * 33, want_b.begin() + (r + 1) * 33, y.begin() + r * 60 + 20));
    EXPECT_EQ(y[r * 60 + 53], 0.0F);
  }
}

// Results of product kernels in a place other than their own, on every instruction set, beside the plain ones.
struct Glu {
  std::string_view name;
  GluKernel run;
};
std::vector<Glu> glus_here() {
  std::vector<Glu> kernels;
  for (const Isa isa : kIsas)
    if (supported(isa)) kernels.push_back({name(isa), glu_kernel(isa)});
  kernels.push_back({"emulated avx512", glu_emulated_avx512});
  return kernels;
}

// The quantized form of dense rows, of the scalar kernel.
std::vector<std::byte> quantized(const std::vector<float>& values, int words) {
  const TestMemory storage(quant_bytes(values.size(), words));
  std::fill_n(storage.data(), quant_bytes(values.size(), words), std::byte{0});
  QuantArgs args;
  args.x = values.data();
  args.to = quant_view(storage.data(), values.size(), words);
  args.rows = 1;
  args.cols = args.pitch = values.size();
  args.words = words;
  kernels(Isa::Scalar).quant(args, {0, items(args)}, nullptr);
  return {storage.data(), storage.data() + quant_bytes(values.size(), words)};
}

TEST(Product, QuantizesItsResultAsTheQuantizerDoes) {
  for (const int words : {1, 2})
    for (const ProductShape& c : {ProductShape{32, 256, 1}, ProductShape{96, 512, 19}, ProductShape{1056, 256, 2}}) {
      Problem problem(Format::Q4_K, c, words, true);
      const std::vector<float> plain = problem.run(product_kernel(Isa::Scalar));
      const std::vector<std::byte> want = quantized(plain, words);
      for (const ProductOfIsa& kernel : products_here()) {
        const TestMemory storage(want.size());
        std::fill_n(storage.data(), want.size(), std::byte{0});
        std::vector<float> y(plain.size());
        problem.part.y = store_rows(y.data(), c.n);
        problem.part.y.quant = quant_view(storage.data(), y.size(), words);
        problem.part.y.words = words;
        ASSERT_EQ(items(problem.args), c.n / 32);
        const TestMemory scratch(scratch_bytes(problem.args));
        for (uint64_t i = items(problem.args); i-- > 0;) kernel.run(problem.args, {i, i + 1}, scratch.data());
        EXPECT_EQ(difference(y, plain), "") << kernel.name;
        EXPECT_TRUE(std::equal(want.begin(), want.end(), storage.data())) << kernel.name << " n " << c.n;
      }
    }
}

TEST(Product, MultipliesOnlyTheFirstRows) {
  Problem problem(Format::F16, {21, 96, 9}, 1);
  const std::vector<float> all = problem.run(product_kernel(Isa::Scalar));
  const int32_t upto = 3;
  problem.args.upto = &upto;
  problem.args.upto_count = 4;
  const std::vector<float> some = problem.run(product_kernel(best_isa()));
  EXPECT_TRUE(std::equal(all.begin(), all.begin() + 7 * 21, some.begin()));
  for (size_t i = 7 * 21; i < some.size(); ++i) EXPECT_EQ(some[i], -1.0F);
}

TEST(Product, PutsAGateOnOnePanelOrTwoByTheFormOfTheResult) {
  for (const auto& [gate_format, up_format] :
       {std::pair{Format::Q8_0, Format::Q6_K}, std::pair{Format::F32, Format::Q4_0}})
    for (const uint64_t n : {1, 31, 64})
      for (const int words : {0, 1, 2}) {
        Problem gate(gate_format, {n, 256, 19}, words, true), up(up_format, {n, 256, 19}, words);
        up.args.quant = gate.args.quant;
        up.args.x = gate.args.x;
        const std::vector<float> gates = gate.run(product_kernel(Isa::Scalar));
        const std::vector<float> ups = up.run(product_kernel(Isa::Scalar));
        std::vector<float> want;
        for (size_t i = 0; i < gates.size(); ++i) want.push_back(math::silu(gates[i]) * ups[i]);
        const bool quantizes = n % 32 == 0 && words != 0;
        for (const Glu& kernel : glus_here()) {
          ProductPart parts[] = {gate.part, up.part};
          GluArgs args;
          args.product = gate.args;
          args.product.parts = parts;
          args.product.part_count = 2;
          std::vector<float> y(want.size(), -1.0F);
          args.out = store_rows(y.data(), n);
          const TestMemory storage(quant_bytes(quant_padded(want.size()), 2));
          if (quantizes) {
            args.out.quant = quant_view(storage.data(), want.size(), words);
            args.out.words = words;
          }
          ASSERT_EQ(items(args), quantizes ? n / 32 : (n + 15) / 16);
          const TestMemory scratch(scratch_bytes(args));
          for (uint64_t i = items(args); i-- > 0;) kernel.run(args, {i, i + 1}, scratch.data());
          ASSERT_EQ(difference(y, want), "") << kernel.name << " n " << n << " words " << words;
        }
      }
}

TEST(Product, HeadsMultiplyTheirOwnUnitInEitherOrderOfTheStoredRows) {
  constexpr uint64_t kHeads = 3, kA = 96, kB = 20, kRows = 5;
  const TestInput input(kRows, kHeads * kA, 0, 1);
  for (const bool rows_out : {true, false}) {
    const Format format = rows_out ? Format::Q8_0 : Format::F16;
    TestRows w(format, kHeads * (rows_out ? kB : kA), rows_out ? kA : kB, 2);
    ProductPart part;
    part.w = rows_out ? describe_heads(format, kHeads, kB, kA) : describe_heads(Format::F32, kHeads, kB, kA);
    const TestMemory packed(part.w.bytes());
    (rows_out ? pack : pack_input_rows)(w.rows(), part.w, packed.data(), 0, part.w.panels());
    part.w.data = packed.data();
    std::vector<float> y(kRows * kHeads * kB);
    part.y = store_rows(y.data(), kB);
    part.x_group = kA;
    ProductArgs args;
    args.parts = &part;
    args.part_count = 1;
    args.rows = kRows;
    args.x = input.plain();
    args.x_pitch = kHeads * kA;
    const TestMemory scratch(scratch_bytes(args));
    for (const ProductOfIsa& kernel : products_here()) {
      kernel.run(args, {0, items(args)}, scratch.data());
      std::vector<float> values(w.rows().count * w.rows().row_values);
      for (uint64_t r = 0; r < w.rows().count; ++r)
        gguf::dequantize(format, w.rows().row(r), values.data() + r * w.rows().row_values, w.rows().row_values);
      for (uint64_t r = 0; r < kRows; ++r)
        for (uint64_t h = 0; h < kHeads; ++h)
          for (uint64_t o = 0; o < kB; ++o) {
            float total = 0;
            for (uint64_t begin = 0; begin < kA; begin += 64) {
              float a = 0;
              for (uint64_t e = begin; e < std::min(begin + 64, kA); ++e)
                a = std::fma(values[rows_out ? (h * kB + o) * kA + e : (h * kA + e) * kB + o],
                             input.plain()[(r * kHeads + h) * kA + e], a);
              total = total + a;
            }
            ASSERT_EQ(y[(r * kHeads + h) * kB + o], total) << kernel.name << ' ' << r << ' ' << h << ' ' << o;
          }
    }
  }
}

}  // namespace
}  // namespace tw::lane::cpu
