#include "spatial/lower/relayout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "spatial/lower/pointwise.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/testing.h"

namespace tw::spatial::lower {
namespace {

using ::testing::HasSubstr;
using testing::OpCase;
using testing::Outcome;

// A tensor x of rows x cols with odd values among it; y is what sections make of it. The op does not matter.
OpCase numbers(uint64_t rows, uint64_t cols, Precision dtype) {
  const bool integer = is_integer(dtype);
  OpCase c{integer ? graph::OpSpec{graph::IntClamp{}} : graph::OpSpec{graph::Scale{}},
           {integer ? testing::integers("x", rows, cols, rows + cols, -128, 128)
                    : testing::reals("x", rows, cols, rows + cols)}};
  c.operands[0]->tensor.dtype = dtype;
  std::vector<double>& values = c.operands[0]->values;
  for (double& value : values) value = integer ? value : round_to(dtype, value);
  if (integer || traits(dtype).kind == NumberKind::Fixed) return c;
  const double odd[] = {std::nan(""), -0.0, std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < std::min<size_t>(3, values.size()); ++i) values[values.size() - 1 - i] = odd[i];
  return c;
}

RelayoutRequest request(uint64_t rows, uint64_t cols, Precision dtype, bool to_dense) {
  return {
      .from = "x", .to = "y", .rows = rows, .cols = cols, .dtype = dtype, .to_dense = to_dense, .init = GivenInit{}};
}

void expect_same_bits(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool same =
        std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]);
    if (!same) ADD_FAILURE() << "element " << i << " is " << got[i] << ", was " << want[i];
  }
}

void expect_zero_padding(const Outcome& outcome, const Target& target) {
  const evaluate::Stored* y = outcome.memory.find("y");
  ASSERT_NE(y, nullptr);
  const uint64_t rows = y->grid.rows * target.tile.rows, cols = y->grid.cols * target.tile.cols;
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < cols; ++c) {
      if (r < y->tensor.rows && c < y->tensor.cols) continue;
      for (const std::byte code : outcome.memory.code(*y, r, c)) ASSERT_EQ(code, std::byte{0});
    }
}

void expect_moves(uint64_t rows, uint64_t cols, Precision dtype, const Target& target) {
  SCOPED_TRACE(::testing::Message() << target.name << ' ' << rows << 'x' << cols << ' ' << name(dtype));
  const OpCase c = numbers(rows, cols, dtype);
  for (const bool to_dense : {true, false}) {
    const Result<Program> section = relayout(request(rows, cols, dtype, to_dense), target);
    ASSERT_TRUE(section.ok()) << to_text(section.refusal());
    EXPECT_TRUE(section->claim.exact);
    EXPECT_EQ(section->at(*section->result()).flat(), !to_dense || rows == 1);
    const Outcome outcome = testing::run({*section}, c, target);
    ASSERT_FALSE(outcome.fault) << evaluate::to_text(*outcome.fault);
    expect_same_bits(outcome.values, c.operands[0]->values);
    expect_zero_padding(outcome, target);
  }
}

TEST(Relayout, MovesEveryShapeBitForBitBothWays) {
  for (const auto& [rows, cols] : {std::pair<uint64_t, uint64_t>{9, 8},
                                   {2, 3},
                                   {9, 2},
                                   {3, 3},
                                   {4, 4},
                                   {5, 12},
                                   {12, 4},
                                   {1, 7},
                                   {13, 1},
                                   {4, 11},
                                   {7, 9},
                                   {8, 5},
                                   {11, 6},
                                   {3, 20},
                                   {9, 20}}) {
    expect_moves(rows, cols, Precision::Bf16, testing::t4());
    expect_moves(rows, cols, Precision::I8, testing::t4());
    expect_moves(rows, cols, Precision::F32, testing::tall());
    expect_moves(rows, cols, Precision::I32, testing::t1());
  }
  for (const auto& [rows, cols] : {std::pair<uint64_t, uint64_t>{40, 64},
                                   {33, 64},
                                   {3, 5},
                                   {40, 4},
                                   {40, 9},
                                   {64, 16},
                                   {70, 1},
                                   {35, 48},
                                   {34, 96}})
    expect_moves(rows, cols, Precision::Bf16, testing::t32());
  expect_moves(20, 37, Precision::Fx16, spatial::testing::shipped_target("fabric"));
}

TEST(Relayout, ThereAndBackIsTheSame) {
  for (const auto& [rows, cols] : {std::pair<uint64_t, uint64_t>{9, 8}, {9, 2}, {7, 3}, {6, 10}}) {
    const Target target = testing::t4();
    const OpCase c = numbers(rows, cols, Precision::Bf16);
    RelayoutRequest there = request(rows, cols, Precision::Bf16, true), back = there;
    there.to = back.from = "between";
    back.to_dense = false;
    back.init = ExternalInit{};
    const Relayout relayouts = relayout_for(target);
    const Result<std::vector<Program>> first = relayouts(there), second = relayouts(back);
    ASSERT_TRUE(first.ok() && second.ok());
    expect_same_bits(testing::run({(*first)[0], (*second)[0]}, c, target).values, c.operands[0]->values);
  }
}

// Two sections that disagree on the layout of h, brought together by what stands between them.
TEST(Relayout, SectionsAgreeOnLayouts) {
  const Target target = testing::t4();
  for (const auto& [rows, cols] : {std::pair<uint64_t, uint64_t>{2, 4}, {3, 2}, {7, 1}}) {
    const OpCase c = numbers(rows, cols, Precision::Bf16);
    const UnaryMap same{"same", arg(0)};
    const OpTensor x = c.operands[0]->tensor, flat{.name = "h", .cols = rows * cols};
    OpTensor x_flat = x;
    x_flat.rows = 1;
    x_flat.cols = rows * cols;
    const OpTensor dense{.name = "h", .rows = rows, .cols = cols}, y{.name = "y", .rows = rows, .cols = cols};
    const Result<Program> first = unary_row(same, {target, {x_flat}, flat});
    const Result<Program> second = unary_matrix(same, {target, {dense}, y});
    ASSERT_TRUE(first.ok() && second.ok());
    const Result<std::vector<Program>> agreed = agree_layouts({*first, *second}, relayout_for(target));
    ASSERT_TRUE(agreed.ok()) << to_text(agreed.refusal());
    EXPECT_EQ(agreed->size(), 3);
    expect_same_bits(testing::run(*agreed, c, target).values, c.operands[0]->values);
  }
}

TEST(Relayout, RowsArePickedInAnyOrder) {
  const Target target = testing::t4();
  OpCase c = numbers(9, 12, Precision::Bf16);
  for (const std::vector<uint64_t>& picks : {std::vector<uint64_t>{8, 0, 3, 3, 7, 4, 5}, {2}, {0, 8}}) {
    const Result<Program> section = rows_of_dense(request(9, 12, Precision::Bf16, false), target, picks);
    ASSERT_TRUE(section.ok());
    EXPECT_THAT(section->name, HasSubstr("_of_9x12"));
    std::vector<double> want;
    for (const uint64_t row : picks)
      want.insert(want.end(), c.operands[0]->values.begin() + static_cast<std::ptrdiff_t>(row * 12),
                  c.operands[0]->values.begin() + static_cast<std::ptrdiff_t>(row * 12 + 12));
    expect_same_bits(testing::run({*section}, c, target).values, want);
  }
}

// Short rows share the load of their tile when there are more of them than sites.
TEST(Relayout, ShortRowsAreLiftedTogether) {
  const Target target = testing::t4();
  const OpCase c = numbers(64, 4, Precision::Bf16);
  const Result<Program> section = rows_of_dense(request(64, 4, Precision::Bf16, false), target);
  ASSERT_TRUE(section.ok());
  const Outcome outcome = testing::run({*section}, c, target);
  EXPECT_EQ(outcome.tiles_stored, 64);
  EXPECT_EQ(outcome.tiles_loaded, 32 * 3);  // two of the table and one of the tensor an item
}

TEST(Relayout, WorkIsSpreadOverTheSites) {
  const Target target = testing::t32();
  for (const bool to_dense : {true, false}) {
    const Result<Program> section = relayout(request(32, 1024, Precision::Bf16, to_dense), target);
    ASSERT_TRUE(section.ok());
    EXPECT_GE(section->work.items.size(), 32);
  }
}

TEST(Relayout, SmallMemoryTakesSmallBlocksAndThenRefuses) {
  const OpCase c = numbers(9, 8, Precision::Bf16);
  for (const bool to_dense : {true, false}) {
    for (const uint64_t bytes : {100000, 1100, 700, 500}) {
      const Target target = testing::t4_with(bytes);
      const Result<Program> section = relayout(request(9, 8, Precision::Bf16, to_dense), target);
      ASSERT_TRUE(section.ok()) << to_text(section.refusal());
      EXPECT_LE(footprint(*section), bytes);
      expect_same_bits(testing::run({*section}, c, target).values, c.operands[0]->values);
    }
    const Result<Program> section = relayout(request(9, 8, Precision::Bf16, to_dense), testing::t4_with(90));
    ASSERT_FALSE(section.ok());
    EXPECT_EQ(section.refusal().kind, RefusalKind::TooLarge);
  }
}

TEST(Relayout, RefusalsAreByName) {
  // Two rows of a tile hold 6 elements, a tile row 8.
  const Target wide = spatial::testing::toy_target({2, 8}, 2);
  for (const bool to_dense : {true, false}) {
    const Result<Program> section = relayout(request(3, 3, Precision::Bf16, to_dense), wide);
    ASSERT_FALSE(section.ok());
    EXPECT_EQ(section.refusal().kind, RefusalKind::Unsupported);
    EXPECT_EQ(section.refusal().subject, "y");
    EXPECT_THAT(section.refusal().reason, HasSubstr("2 rows of a tile hold 6 elements"));
    EXPECT_TRUE(relayout(request(2, 3, Precision::Bf16, to_dense), wide).ok());
    EXPECT_TRUE(relayout(request(3, 4, Precision::Bf16, to_dense), wide).ok());
    const Result<Program> real = relayout(request(3, 3, Precision::F32, to_dense), testing::without_reals());
    ASSERT_FALSE(real.ok());
    EXPECT_EQ(real.refusal().kind, RefusalKind::Missing);
  }
}

}  // namespace
}  // namespace tw::spatial::lower
