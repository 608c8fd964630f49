#include "spatial/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_good.h"
#include "spatial/issue.h"
#include "spatial/sizing.h"
#include "spatial/testing.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

using ::testing::HasSubstr;

TEST(Builder, WritesAFlatAdd) {
  const Program add = good(testing::flat_add(testing::toy_square(), 7));
  EXPECT_EQ(add.name, "add_7");
  EXPECT_EQ(add.target, "toy_square");
  ASSERT_EQ(add.stages.size(), 4U);
  EXPECT_EQ(add.stages[0].load()->pattern.block_w, 2U);  // seven elements are two tiles of four columns
  const std::vector<Edge> edges{{StageId{0}, BufferId{0}, StageId{2}},
                                {StageId{1}, BufferId{1}, StageId{2}},
                                {StageId{2}, BufferId{2}, StageId{3}}};
  EXPECT_EQ(add.edges, edges);
  EXPECT_EQ(add.work.items, one_item(2));
  EXPECT_EQ(add.work.plan, (BlockPlan{.per_site_n = 2, .block_n = 2}));
  EXPECT_EQ(footprint(add), 3U * 2 * 2 * 16 * 2);  // three buffers, two pages of two tiles of sixteen bf16
}

TEST(Builder, RefusesAPageAboveTheAccumulator) {
  const Result<Program> wide = testing::flat_add(testing::toy_square(), 9);
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.refusal().kind, RefusalKind::TooLarge);
  EXPECT_EQ(wide.refusal().subject, "c");
  EXPECT_THAT(wide.refusal().reason, HasSubstr("page of 3 tiles, the accumulator of target toy_square holds 2"));
}

TEST(Builder, RefusesAMissingDatapathByName) {
  Target integers = testing::toy_square();
  integers.name = "integers";
  integers.real_element.reset();
  const Result<Program> add = testing::flat_add(integers, 4);
  ASSERT_FALSE(add.ok());
  EXPECT_EQ(
      to_text(add.refusal()),
      "c: needs a real elementwise datapath, which target integers does not have. Choose a target whose file names "
      "real.element.");
}

TEST(Builder, RefusesAMissingCapabilityByName) {
  Target plain = testing::toy_square();
  plain.capabilities.erase(Capability::IndirectTiles);
  const Result<Program> gather = testing::tile_gather(plain, 5);
  ASSERT_FALSE(gather.ok());
  EXPECT_THAT(gather.refusal().reason, HasSubstr("needs indirect_tiles, which target toy_square does not have"));
}

TEST(Builder, AnIndirectLoadReadsItsIndexPage) {
  const Program gather = good(testing::tile_gather(testing::toy_square(), 5));
  const Stage& load = gather.stages[2];
  EXPECT_EQ(load.ins, std::vector{BufferId{1}});
  EXPECT_EQ(gather.edges[1], (Edge{StageId{1}, BufferId{1}, StageId{2}}));
}

TEST(Builder, AFoldIssuesByLevelAndNamedVariable) {
  const Program fold = good(testing::row_sum_fold(testing::toy_square(), 5, true));
  const Issue once{}, each{.per_block = true};
  const std::vector<Issue> want{once, each, each, each, once, once};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(runs(fold, fold.stages[i]), want[i]) << fold.stages[i].name;
  const std::vector<BufferUses> uses = buffer_uses(fold);
  const std::optional<Carry> carry = carry_of(fold, BufferId{3}, uses[3]);
  ASSERT_TRUE(carry.has_value());
  EXPECT_EQ(fold.at(carry->update).name, "fold_sum");
  EXPECT_FALSE(carry_of(fold, BufferId{2}, uses[2]).has_value());
  EXPECT_EQ(fold.work.k_trip->count(1), 1U);
  EXPECT_EQ(fold.work.k_trip->count(20), 5U);
}

TEST(Builder, ATileProductPushesAfterTheLastBlock) {
  const Program product = good(testing::streamed_product(testing::toy_square(), 2, 3, 4));
  EXPECT_TRUE(runs(product, product.stages[2]).per_block);
  EXPECT_FALSE(pushes(product, product.stages[2]).per_block);
  EXPECT_EQ(runs(product, product.stages[0]).times(product.work.plan, 4), 4U);
  EXPECT_EQ(compute_shapes(product), (std::set<std::string_view>{"Generic", "MatmulTiles"}));
  EXPECT_TRUE(is_closed_algebra(product));
}

TEST(Algebra, AnyOtherShapeIsCaught) {
  EXPECT_TRUE(is_closed_algebra(std::set<std::string_view>{}));
  for (const std::string_view other : {"Requant", "Bias", "Relu", "Scalar"})
    EXPECT_FALSE(is_closed_algebra(std::set<std::string_view>{"Generic", other})) << other;
}

TEST(Sizing, PagedTakesOnePageExactlyWhenTwoDoNotFit) {
  const auto build = [](const Target& target) {
    return [target](uint32_t pages) {
      Builder b(target, Precision::F32);
      const TensorId x = b.tensor("x", TensorRole::Input, 1, 8, Precision::F32, GivenInit{});
      const TensorId y = b.tensor("y", TensorRole::Output, 1, 8, Precision::F32);
      const BufferId in = b.buffer("in", 2, Precision::F32, pages), out = b.buffer("out", 2, Precision::F32, pages);
      b.load("load", x, {}, in);
      GenericStage copy = b.compute("copy", flat(8));
      const Expr v = copy.read(in, at(0));
      copy.write(out, v);
      b.store("store", out, y, {});
      return std::move(b).finish({.name = "copy_8", .items = one_item(2), .claim = exact()});
    };
  };
  Target target = testing::toy_square();
  target.local_bytes = 512;  // two buffers of two pages of two tiles of 64 bytes
  EXPECT_EQ(footprint(good(paged(target, build(target)))), 512U);
  target.local_bytes = 511;
  EXPECT_EQ(footprint(good(paged(target, build(target)))), 256U);
  target.local_bytes = 255;
  const Result<Program> none = within(paged(target, build(target)), target);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.refusal().reason, HasSubstr("needs 256 bytes of local memory, a site of target toy_square has 255"));
}

TEST(Sizing, AFootprintThatNoNumberHoldsFitsNowhere) {
  Program add = good(testing::flat_add(testing::toy_square(), 7));
  add.tile = {1024, 1024};
  add.buffers.resize(2);
  for (Buffer& buffer : add.buffers) buffer = {buffer.name, 1U << 24, 1U << 16, Precision::I64, buffer.kind};
  EXPECT_EQ(footprint(add), ~uint64_t{0});  // twice 2^63 bytes
  EXPECT_FALSE(fits(add, testing::toy_square()));
}

}  // namespace
}  // namespace tw::spatial
