#include "spatial/lower/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/place.h"
#include "spatial/testing.h"

namespace tw::spatial::lower {
namespace {

using testing::CaseOperand;
using testing::expect_equal;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::integers;
using testing::OpCase;
using testing::reals;

struct ProductShape {
  uint64_t m, k, n;
};
constexpr ProductShape kShapes[] = {{1, 1, 1},  {1, 4, 4},    {1, 5, 3},   {3, 7, 9},   {4, 8, 8},
                                    {5, 9, 4},  {1, 33, 17},  {8, 16, 12}, {9, 31, 40}, {2, 3, 50},
                                    {17, 1, 2}, {13, 12, 11}, {6, 20, 24}};

OpCase product(ProductShape shape, uint64_t seed, std::optional<Precision> dtype = {}) {
  OpCase c{graph::Matmul{}, {reals("x", shape.m, shape.k, seed), reals("w", shape.k, shape.n, seed + 100)}};
  c.operands[1]->tensor.constant = true;
  for (auto& operand : c.operands) operand->tensor.dtype = dtype;
  return c;
}

OpCase integer_product(ProductShape shape, uint64_t seed, Precision dtype) {
  OpCase c{graph::Matmul{},
           {integers("x", shape.m, shape.k, seed, -100, 100), integers("w", shape.k, shape.n, seed + 9, -100, 100)}};
  for (auto& operand : c.operands) operand->tensor.dtype = dtype;
  return c;
}

std::vector<Target> tiles_of_all_kinds() {
  return {testing::t4(),
          testing::t4f(),
          testing::t1(),
          testing::tall(),
          spatial::testing::toy_target({4, 8}, 2),
          spatial::testing::toy_target({6, 4}, 3),
          spatial::testing::toy_target({4, 6}, 3)};
}

TEST(Product, AnyShapeOnTilesOfAnyKind) {
  for (const Target& target : tiles_of_all_kinds())
    for (const ProductShape& shape : kShapes) {
      SCOPED_TRACE(::testing::Message() << target.name << ' ' << shape.m << 'x' << shape.k << 'x' << shape.n);
      EXPECT_EQ(expect_lowers(product(shape, shape.k), target, {64}).form, "tiles");
    }
  for (const ProductShape& shape : {ProductShape{1, 64, 96}, {33, 65, 31}, {2, 33, 257}, {70, 32, 64}})
    expect_lowers(product(shape, 3), testing::t32());
}

TEST(Product, IntegersAreMultipliedExactly) {
  for (const Target& target : tiles_of_all_kinds())
    for (const ProductShape& shape : kShapes) {
      SCOPED_TRACE(::testing::Message() << target.name << ' ' << shape.m << 'x' << shape.k << 'x' << shape.n);
      const Lowered tiles = expect_lowers(integer_product(shape, shape.n, Precision::I8), target);
      EXPECT_EQ(tiles.form, "tiles");
      EXPECT_TRUE(tiles.sections[0].claim.exact);
      // No target multiplies tiles of i32.
      const Lowered loops = expect_lowers(integer_product(shape, shape.n, Precision::I32), target);
      EXPECT_EQ(loops.form, "loops");
      EXPECT_THAT(loops.why, HasSubstr("multiplies no tiles of i32"));
    }
}

TEST(Product, ASumOutsideItsIntegerIsAFault) {
  OpCase c = integer_product({1, 5, 1}, 1, Precision::I32);
  for (auto& operand : c.operands) operand->values.assign(5, 1 << 20);
  EXPECT_EQ(testing::expect_fault(c, testing::t4()).kind, evaluate::FaultKind::Overflow);
}

TEST(Product, LoopsAndTilesAreTheSameSum) {
  for (const Target& target : {testing::t4f(), testing::t4(), testing::tall(), testing::t1()})
    for (const ProductShape& shape : {ProductShape{3, 21, 9}, {9, 8, 8}, {1, 6, 5}, {5, 40, 3}}) {
      const OpCase c = product(shape, 5);
      const OpView view = testing::view_of(c, target);
      const Result<Program> tiles = product_tiles(view, {}), loops = product_loops(view, 1);
      ASSERT_TRUE(tiles.ok() && loops.ok());
      EXPECT_EQ(testing::run({*tiles}, c, target).values, testing::run({*loops}, c, target).values);
    }
}

TEST(Product, BlocksDoNotChangeTheBits) {
  const OpCase c = product({8, 32, 16}, 5);
  const Target target = testing::t4();
  const OpView view = testing::view_of(c, target);
  std::optional<std::vector<double>> values;
  for (const ProductBlocks blocks : {ProductBlocks{1, 1, 1}, {2, 1, 2}, {1, 2, 4}, {1, 1, 8}}) {
    const Result<Program> section = product_tiles(view, blocks);
    ASSERT_TRUE(section.ok());
    const testing::Outcome outcome = testing::run({*section}, c, target);
    if (!values) values = outcome.values;
    EXPECT_EQ(outcome.values, *values);
  }
}

// What the result is stored as is the caller's: an accumulator's precision is not rounded.
TEST(Product, TheResultHasThePrecisionThatIsAskedFor) {
  for (const Precision dtype : {Precision::F32, Precision::Bf16}) {
    const OpCase c = product({3, 30, 9}, 5);
    const Target target = testing::t4();
    OpView view = testing::view_of(c, target);
    view.result.dtype = dtype;
    const Result<Program> section = matmul_section(view);
    expect_equal(section, c, target, {dtype == Precision::F32 ? 64.0 : 2.0});
    EXPECT_EQ(section->at(*section->result()).dtype, dtype);
  }
}

TEST(Product, AMatrixTimesItself) {
  OpCase c = product({5, 5, 5}, 2);
  c.operands[1] = c.operands[0];
  expect_lowers(c, testing::t4());
}

TEST(Product, PrecisionsThatTilesDoNotTakeAreLoopedOver) {
  const Lowered lowered = expect_lowers(product({3, 40, 70}, 4, Precision::F32), testing::t32());
  EXPECT_EQ(lowered.form, "loops");
  EXPECT_EQ(expect_lowers(product({3, 40, 70}, 4), testing::t32()).form, "tiles");
}

TEST(Product, FixedPoint) {
  OpCase c = product({3, 40, 20}, 4);
  EXPECT_EQ(expect_lowers(c, spatial::testing::shipped_target("fabric"), {8}).form, "tiles");
}

TEST(Product, ShapesOfModelsKeepSitesBusyAndFit) {
  struct Want {
    ProductShape shape;
    size_t sites;
  };
  for (const auto& [shape, sites] : {Want{{1, 1024, 3072}, 40},
                                     {{1, 1024, 151936}, 60},
                                     {{512, 1024, 3072}, 60},
                                     {{1, 4096, 14336}, 60},
                                     {{512, 3072, 1024}, 60},
                                     {{1, 3072, 1024}, 30}}) {
    const Target target = testing::t32();
    const OpTensor x{.name = "x", .rows = shape.m, .cols = shape.k}, w{.name = "w", .rows = shape.k, .cols = shape.n};
    const Result<Program> section = matmul_section({target, {x, w}, {.name = "y", .rows = shape.m, .cols = shape.n}});
    ASSERT_TRUE(section.ok()) << to_text(section.refusal());
    const Result<SectionPlacement> placed = place(*section, target);
    ASSERT_TRUE(placed.ok());
    EXPECT_GE(std::count_if(placed->begin(), placed->end(), [](const SiteShare& s) { return s.count > 0; }), sites);
    EXPECT_GE(section->work.plan.num_blocks, 4);
  }
}

TEST(Product, SmallMemoryTakesSmallBlocksAndThenRefuses) {
  const OpCase c = product({8, 64, 16}, 5);
  std::set<uint64_t> footprints;
  for (const uint64_t bytes : {100000, 1200, 800, 500, 320}) {
    const Lowered lowered = expect_lowers(c, testing::t4_with(bytes));
    footprints.insert(footprint(lowered.sections[0]));
  }
  EXPECT_GE(footprints.size(), 3);
  EXPECT_EQ(expect_refused(c, testing::t4_with(100)).kind, RefusalKind::TooLarge);
}

TEST(Product, AMissingDatapathIsRefusedByName) {
  const Refusal refusal = expect_refused(product({1, 4, 4}, 1), testing::without_reals());
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_EQ(refusal.subject, "y");
}

}  // namespace
}  // namespace tw::spatial::lower
