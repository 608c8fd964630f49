#include "spatial/lower/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_equal;
using testing::expect_lowers;
using testing::expect_refused;
using testing::integers;
using testing::OpCase;
using testing::reals;
using testing::view_of;

OpCase join(uint64_t rows, uint32_t heads, uint64_t a, uint64_t b, bool whole = false) {
  const auto part = [&](const char* name, uint64_t width, uint64_t seed) {
    return whole ? integers(name, rows, heads * width, seed, -2000000000, 2000000000)
                 : reals(name, rows, heads * width, seed);
  };
  return {graph::Join{heads}, {part("a", a, 1), part("b", b, 2)}};
}

struct JoinShape {
  uint64_t rows;
  uint32_t heads;
  uint64_t a, b;
  std::string_view form;
};
constexpr JoinShape kSmallJoins[] = {
    {1, 1, 3, 2, "flat"},          {1, 2, 2, 1, "flat"},  {2, 1, 1, 3, "flat"},    {1, 2, 3, 2, "column blocks"},
    {1, 3, 4, 3, "column blocks"}, {5, 2, 1, 2, "rows"},  {3, 2, 3, 4, "rows"},    {1, 2, 4, 12, "tiles"},
    {1, 3, 12, 4, "tiles"},        {2, 2, 8, 8, "tiles"}, {1, 1, 24, 16, "tiles"}, {1, 1, 20, 4, "tiles"}};

TEST(Join, EveryForm) {
  for (const JoinShape& s : kSmallJoins)
    for (const bool whole : {false, true}) {
      const Lowered lowered = expect_lowers(join(s.rows, s.heads, s.a, s.b, whole), testing::t4());
      EXPECT_EQ(lowered.form, s.form) << s.a << " + " << s.b;
      EXPECT_TRUE(lowered.sections[0].claim.exact);
    }
  for (const JoinShape& s :
       {JoinShape{1, 2, 3, 2, ""}, JoinShape{3, 2, 2, 1, ""}, JoinShape{2, 1, 4, 8, ""}, JoinShape{9, 2, 4, 8, ""}})
    for (const Target& target : {testing::t1(), testing::tall()})
      expect_lowers(join(s.rows, s.heads, s.a, s.b), target);
  EXPECT_EQ(expect_lowers(join(1, 2, 3, 2), testing::t32()).form, "flat");
  EXPECT_EQ(expect_lowers(join(8, 1, 20, 13), testing::t32()).form, "rows");
  EXPECT_EQ(expect_lowers(join(33, 4, 128, 64), testing::t32()).form, "tiles");
  EXPECT_EQ(expect_lowers(join(5, 16, 20, 13), testing::t32()).form, "rows");
  EXPECT_EQ(expect_lowers(join(1, 3, 32, 64), testing::t32()).form, "tiles");
}

TEST(Join, FormsAreOne) {
  for (const JoinShape& s : kSmallJoins) {
    const OpCase c = join(s.rows, s.heads, s.a, s.b);
    const graph::Join op{s.heads};
    expect_equal(join_flat(op, view_of(c, testing::t4())), c, testing::t4());
    expect_equal(join_flat(op, view_of(c, testing::t4a())), c, testing::t4a());
    if (s.rows > 1) {
      expect_equal(join_rows(op, view_of(c, testing::t4())), c, testing::t4());
      expect_equal(join_rows(op, view_of(c, testing::t4a())), c, testing::t4a());
    }
    const Result<Program> tiles = join_tiles(op, view_of(c, testing::t4()));
    EXPECT_EQ(tiles.ok(), s.form == "tiles");
    if (tiles) {
      expect_equal(tiles, c, testing::t4());
    } else {
      EXPECT_EQ(tiles.refusal().kind, RefusalKind::Unsupported);
    }
  }
}

TEST(Join, ATensorWithItself) {
  for (const auto& [heads, width] : {std::pair{2U, 3U}, std::pair{2U, 1U}, std::pair{3U, 8U}, std::pair{4U, 3U}}) {
    OpCase c = join(2, heads, width, width);
    c.operands[1] = c.operands[0];
    const Lowered lowered = expect_lowers(c, testing::t4());
    int declared = 0;
    for (const Tensor& tensor : lowered.sections[0].tensors) declared += tensor.name == "a" ? 1 : 0;
    EXPECT_EQ(declared, 1);
  }
}

TEST(Join, OneSideMayBeEmpty) {
  OpCase c = join(1, 2, 3, 2);
  for (const size_t empty : {0, 1}) {
    const Target target = testing::t4();
    OpView view = view_of(c, target);
    view.operands[empty]->cols = 0;
    view.result.cols = view[1 - empty].cols;
    const Result<Program> joined = join_flat({2}, view);
    ASSERT_TRUE(joined.ok()) << to_text(joined.refusal());
    const testing::Outcome outcome = testing::run({*joined}, c, testing::t4());
    std::vector<double> want = c.operands[1 - empty]->values;
    for (double& value : want) value = round_to(Precision::Bf16, value);
    EXPECT_EQ(outcome.values, want);
  }
}

TEST(Join, WhatCannotBeJoinedIsRefused) {
  const OpCase c = join(2, 2, 4, 4);
  const Target target = testing::t4();
  const OpView view = view_of(c, target);
  const auto refused = [](const graph::Join& op, const OpView& at) {
    const Result<Lowered> lowered = lower(op, at);
    ASSERT_FALSE(lowered.ok());
    EXPECT_EQ(lowered.refusal().kind, RefusalKind::Unsupported);
    EXPECT_EQ(lowered.refusal().subject, "y");
  };
  refused({0}, view);
  refused({3}, view);
  OpView rows = view;
  rows.operands[1]->rows = 3;
  refused({2}, rows);
  OpView nothing = view;
  nothing.operands[0]->cols = nothing.operands[1]->cols = 0;
  refused({2}, nothing);
  EXPECT_EQ(expect_refused(c, testing::without_reals()).kind, RefusalKind::Missing);
  Target dull = testing::t4();
  dull.capabilities.erase(Capability::IndirectTiles);
  EXPECT_EQ(expect_refused(c, dull).kind, RefusalKind::Missing);
  EXPECT_EQ(expect_refused(join(1, 2, 13, 3), testing::t4_with(200)).kind, RefusalKind::TooLarge);
}

// The latent and the rotary part of 16 heads: 288 tiles, 18 a head in blocks of two.
TEST(Join, ALatentAttention) {
  const Lowered lowered = expect_lowers(join(1, 16, 512, 64), testing::t32());
  EXPECT_EQ(lowered.form, "tiles");
  EXPECT_EQ(lowered.sections[0].work.items.size(), 16U * 9);
}

}  // namespace
}  // namespace tw::spatial::lower
