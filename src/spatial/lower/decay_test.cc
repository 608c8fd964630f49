#include "spatial/lower/decay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_lowers;
using ::testing::HasSubstr;
using testing::OpCase;
using testing::reals;

OpCase decay(uint64_t rows, uint64_t cols, double low = -6, double high = 6) {
  return {graph::Decay{},
          {reals("x", rows, cols, rows * 7 + cols, low, high), reals("bias", 1, cols, cols + 1),
           reals("rate", 1, cols, cols + 2, -8, 0)}};
}

TEST(Decay, EveryForm) {
  for (const uint64_t n : {1, 5, 8}) EXPECT_EQ(expect_lowers(decay(1, n), testing::t4()).form, "whole row");
  for (const uint64_t n : {9, 30}) EXPECT_EQ(expect_lowers(decay(1, n), testing::t4()).form, "blocked");
  for (const auto& [rows, cols] : {std::pair{3U, 5U}, std::pair{9U, 4U}, std::pair{2U, 13U}})
    for (const Target& target : {testing::t4(), testing::tall(), testing::t1()})
      EXPECT_EQ(expect_lowers(decay(rows, cols), target).form, "dense");
  EXPECT_EQ(expect_lowers(decay(3, 40), testing::t32()).form, "dense");
  EXPECT_EQ(expect_lowers(decay(1, 48), testing::t32()).form, "whole row");
  EXPECT_EQ(expect_lowers(decay(1, 257), testing::t32()).form, "blocked");
}

TEST(Decay, BlockedIsTheWholeRowInBits) {
  const OpCase c = decay(1, 7);
  const Target target = testing::t4();
  const OpView view = testing::view_of(c, target);
  const Result<Program> row = decay_row(view), tiles = decay_tiles(view);
  ASSERT_TRUE(row.ok() && tiles.ok());
  EXPECT_EQ(row->name, tiles->name);
  EXPECT_EQ(testing::run({*row}, c, testing::t4()).values, testing::run({*tiles}, c, testing::t4()).values);
}

TEST(Decay, OneTensorMayBeSeveralOperands) {
  for (const auto& [rows, cols] : {std::pair{1U, 5U}, std::pair{1U, 9U}, std::pair{3U, 5U}}) {
    OpCase c = decay(rows, cols);
    c.operands[1] = c.operands[2];
    if (rows == 1) c.operands[0] = c.operands[2];
    expect_lowers(c, testing::t4());
  }
}

TEST(Decay, TailsAreExact) {
  for (const uint64_t rows : {1, 3}) {
    // Far below 0 nothing decays; far above, a small rate still says how much.
    OpCase c = decay(rows, 4, -2000, -1000);
    expect_lowers(c, testing::t4f());
    c = decay(rows, 4, 200, 2000);
    c.operands[2]->values = {-0.001, -0.0005, 0, -3};
    expect_lowers(c, testing::t4f(), {16});
  }
}

TEST(Decay, WhatATargetLacksIsRefusedByName) {
  for (const uint64_t rows : {1, 3}) {
    EXPECT_EQ(testing::expect_refused(decay(rows, 4), testing::without_reals()).kind, RefusalKind::Missing);
    Target dull = testing::t4();
    dull.capabilities.erase(Capability::Ln);
    const Refusal refusal = testing::expect_refused(decay(rows, 4), dull);
    EXPECT_EQ(refusal.kind, RefusalKind::Missing);
    EXPECT_THAT(to_text(refusal), HasSubstr("ln"));
  }
  const Result<Program> row = decay_row(testing::view_of(decay(1, 9), testing::t4()));
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.refusal().kind, RefusalKind::TooLarge);
}

}  // namespace
}  // namespace tw::spatial::lower
