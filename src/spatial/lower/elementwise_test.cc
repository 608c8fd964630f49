#include "spatial/lower/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using graph::Arithmetic;
using testing::CaseOperand;
using testing::expect_equal;
using testing::expect_fault;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::integers;
using testing::OpCase;
using testing::reals;
using testing::view_of;

constexpr Arithmetic kAll[] = {Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul,
                               Arithmetic::Div, Arithmetic::Min, Arithmetic::Max};

OpCase both(Arithmetic op, uint64_t rows, uint64_t cols, bool whole) {
  const uint64_t seed = rows * 131 + cols;
  if (!whole)
    return {graph::Elementwise{op}, {reals("a", rows, cols, seed), reals("b", rows, cols, seed + 1, 0.25, 3)}};
  OpCase c{graph::Elementwise{op},
           {integers("a", rows, cols, seed, -90, 90), integers("b", rows, cols, seed + 1, -9, 9)}};
  for (double& value : c.operands[1]->values)
    if (value == 0) value = -7;
  return c;
}

OpCase spread(Arithmetic op, bool scalar, uint64_t rows, uint64_t cols, bool whole) {
  OpCase c = both(op, rows, cols, whole);
  c.spec = graph::RowBroadcast{op, scalar};
  c.operands[1] = both(op, scalar ? rows : 1, scalar ? 1 : cols, whole).operands[1];
  return c;
}

struct ElementwiseShape {
  uint64_t rows;
  uint64_t cols;
  std::string_view form;
};

// ---- two tensors of one shape ----

TEST(Elementwise, EveryOperatorInEveryForm) {
  for (const Arithmetic op : kAll) {
    for (const bool whole : {false, true}) {
      for (const auto& [rows, cols, form] :
           {ElementwiseShape{1, 1, "whole row"}, ElementwiseShape{1, 5, "whole row"},
            ElementwiseShape{1, 8, "whole row"}, ElementwiseShape{1, 9, "blocked"}, ElementwiseShape{1, 30, "blocked"},
            ElementwiseShape{2, 5, "matrix"}, ElementwiseShape{9, 3, "matrix"}})
        EXPECT_EQ(expect_lowers(both(op, rows, cols, whole), testing::t4()).form, form) << rows << "x" << cols;
      expect_lowers(both(op, 2, 3, whole), testing::t1());
      expect_lowers(both(op, 9, 9, whole), testing::tall());
    }
    for (const uint64_t n : {33, 256, 257}) expect_lowers(both(op, 1, n, false), testing::t32());
    expect_lowers(both(op, 33, 33, false), testing::t32());
  }
}

TEST(Elementwise, BlockedIsTheWholeRowInBits) {
  for (const Arithmetic op : kAll)
    for (const bool whole : {false, true}) {
      const OpCase c = both(op, 1, 7, whole);
      const graph::Elementwise spec{op};
      const Target target = testing::t4();
      const OpView view = view_of(c, target);
      const Result<Program> row = elementwise_row(spec, view), blocked = elementwise_blocked(spec, view);
      ASSERT_TRUE(row.ok() && blocked.ok());
      EXPECT_EQ(row->name, blocked->name);
      EXPECT_EQ(testing::run({*row}, c, testing::t4()).values, testing::run({*blocked}, c, testing::t4()).values);
    }
}

TEST(Elementwise, OneTensorMayBeBothOperands) {
  for (const Arithmetic op : kAll)
    for (const auto& [rows, cols] : {std::pair{1, 5}, std::pair{1, 11}, std::pair{3, 6}}) {
      OpCase c = both(op, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), false);
      c.operands[0] = c.operands[1];
      const Lowered lowered = expect_lowers(c, testing::t4());
      EXPECT_EQ(lowered.sections[0].tensors.size(), 2U);
      // One column spread over itself, one row over itself.
      OpCase one = spread(op, rows > 1, static_cast<uint64_t>(rows), rows > 1 ? 1 : static_cast<uint64_t>(cols), false);
      one.operands[0] = one.operands[1];
      expect_lowers(one, testing::t4());
      expect_equal(row_broadcast_tiles(graph::RowBroadcast{op, rows > 1}, view_of(one, testing::t4())), one,
                   testing::t4());
    }
}

TEST(Elementwise, IntegersRoundDownAndNeverWrap) {
  const CaseOperand a{{.name = "a", .cols = 8, .fill = GivenFill{200}, .integer = true}, {7, -7, 7, -7, 0, -1, 1, -8}};
  const CaseOperand b{{.name = "b", .cols = 8, .fill = GivenFill{200}, .integer = true}, {2, 2, -2, -2, 5, 3, -3, 4}};
  const OpCase quotient{graph::Elementwise{Arithmetic::Div}, {a, b}};
  const Lowered lowered = expect_lowers(quotient, testing::t4());
  EXPECT_EQ(testing::run(lowered.sections, quotient, testing::t4()).values,
            (std::vector<double>{3, -4, -4, 3, 0, -1, -1, -2}));

  const double most = std::numeric_limits<int32_t>::max();
  for (const uint64_t cols : {1, 9}) {
    OpCase over{graph::Elementwise{Arithmetic::Add},
                {integers("a", 1, cols, 1, 0, 5), integers("b", 1, cols, 2, 1, 2)}};
    over.operands[0]->values.back() = most;
    EXPECT_EQ(expect_fault(over, testing::t4()).kind, evaluate::FaultKind::Overflow);
    over.spec = graph::RowBroadcast{Arithmetic::Mul};
    over.operands[1]->values.back() = 2;
    EXPECT_EQ(expect_fault(over, testing::t4()).kind, evaluate::FaultKind::Overflow);
  }
}

TEST(Elementwise, ADivisionByZeroFaultsInsideAndNotInPadding) {
  for (const auto& [rows, cols] : {std::pair{1U, 5U}, std::pair{1U, 11U}, std::pair{5U, 6U}})
    for (const bool broadcast : {false, true}) {
      OpCase c = broadcast ? spread(Arithmetic::Div, false, rows, cols, true) : both(Arithmetic::Div, rows, cols, true);
      expect_lowers(c, testing::t4());
      c.operands[1]->values.back() = 0;
      EXPECT_EQ(expect_fault(c, testing::t4()).kind, evaluate::FaultKind::DivisionByZero);
    }
}

TEST(Elementwise, InfinitiesAndZeros) {
  const double inf = std::numeric_limits<double>::infinity();
  const CaseOperand a{{.name = "a", .cols = 9, .fill = GivenFill{}}, {inf, -inf, 1, -1, 0.0, -0.0, inf, 5, -3}};
  const CaseOperand b{{.name = "b", .cols = 9, .fill = GivenFill{}}, {2, 2, inf, 0.0, 4, 4, inf, -0.0, -inf}};
  for (const Arithmetic op : kAll) expect_lowers({graph::Elementwise{op}, {a, b}}, testing::t4f());
}

// ---- a row or a column over a matrix ----

TEST(RowBroadcast, EveryOperatorInEveryForm) {
  for (const Arithmetic op : kAll)
    for (const bool scalar : {false, true})
      for (const bool whole : {false, true}) {
        for (const auto& [rows, cols, form] :
             {ElementwiseShape{1, 1, "flat"}, ElementwiseShape{1, 8, "flat"}, ElementwiseShape{3, 2, "flat"},
              ElementwiseShape{8, 1, "flat"}, ElementwiseShape{3, 3, "matrix"}, ElementwiseShape{1, 9, "blocked"},
              ElementwiseShape{5, 9, "matrix"}, ElementwiseShape{9, 1, "matrix"}})
          EXPECT_EQ(expect_lowers(spread(op, scalar, rows, cols, whole), testing::t4()).form, form)
              << rows << "x" << cols;
        expect_lowers(spread(op, scalar, 3, 3, whole), testing::t1());
        expect_lowers(spread(op, scalar, 9, 9, whole), testing::tall());
      }
  EXPECT_EQ(expect_lowers(spread(Arithmetic::Add, false, 3, 5, false), testing::t32()).form, "flat");
  EXPECT_EQ(expect_lowers(spread(Arithmetic::Mul, false, 8, 33, false), testing::t32()).form, "matrix");
}

TEST(RowBroadcast, FlatBlocksAndTilesAgreeInBits) {
  for (const Arithmetic op : kAll)
    for (const bool scalar : {false, true})
      for (const bool whole : {false, true})
        for (const auto& [rows, cols] : {std::pair{3U, 3U}, std::pair{2U, 4U}, std::pair{5U, 7U}, std::pair{1U, 13U}}) {
          const OpCase c = spread(op, scalar, rows, cols, whole);
          const graph::RowBroadcast spec{op, scalar};
          const Target target = testing::t4();
          const OpView view = view_of(c, target);
          const Result<Program> blocks = row_broadcast_flat(spec, view), tiles = row_broadcast_tiles(spec, view);
          expect_equal(blocks, c, testing::t4());
          expect_equal(tiles, c, testing::t4());
          EXPECT_NE(blocks->name, tiles->name);
          EXPECT_EQ(testing::run({*blocks}, c, testing::t4()).values, testing::run({*tiles}, c, testing::t4()).values);
        }
}

// ---- refusals ----

TEST(Elementwise, WhatATargetLacksIsRefusedByName) {
  const auto refused = [](const OpCase& c, const Target& target, RefusalKind kind, const std::string& word) {
    const Refusal refusal = expect_refused(c, target);
    EXPECT_EQ(refusal.kind, kind);
    EXPECT_EQ(refusal.subject, "y");
    EXPECT_THAT(to_text(refusal), HasSubstr(word));
  };
  for (const uint64_t rows : {1, 3}) {
    refused(both(Arithmetic::Add, rows, 4, false), testing::without_reals(), RefusalKind::Missing, "real");
    refused(spread(Arithmetic::Add, true, rows, 4, false), testing::without_reals(), RefusalKind::Missing, "real");
    Target dull = testing::t4();
    dull.capabilities = {};
    refused(both(Arithmetic::Div, rows, 4, false), dull, RefusalKind::Missing, "recip");
    refused(both(Arithmetic::Div, rows, 4, true), dull, RefusalKind::Missing, "floor_div");
  }
  const OpCase wide = both(Arithmetic::Add, 1, 9, false);
  const Result<Program> row = elementwise_row({Arithmetic::Add}, view_of(wide, testing::t4()));
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.refusal().kind, RefusalKind::TooLarge);
}

TEST(Elementwise, AModelsRow) {
  EXPECT_EQ(expect_lowers(both(Arithmetic::Add, 1, 5120, false), testing::t32()).sections[0].work.items.size(), 160U);
}

}  // namespace
}  // namespace tw::spatial::lower
