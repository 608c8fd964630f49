#include "spatial/lower/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using testing::CaseOperand;
using testing::expect_equal;
using testing::expect_fault;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::index;
using testing::integers;
using testing::OpCase;
using testing::reals;

CaseOperand table_of(uint64_t rows, uint64_t cols, bool integer = false) {
  return integer ? integers("t", rows, cols, rows + cols, -100, 100) : reals("t", rows, cols, rows + cols);
}
OpCase literal(CaseOperand table, uint32_t row) { return {graph::RowGather{row}, {std::move(table), std::nullopt}}; }
OpCase named(CaseOperand table, int64_t row) {
  const uint64_t rows = table.tensor.rows;
  return {graph::RowGather{}, {std::move(table), index("i", row, rows + 1)}};
}
OpCase several(CaseOperand table, std::vector<int64_t> rows) {
  CaseOperand index = integers("i", rows.size(), 1, 1, 0, static_cast<int64_t>(table.tensor.rows) + 2);
  index.values.assign(rows.begin(), rows.end());
  return {graph::RowsGather{}, {std::move(table), std::move(index)}};
}

struct GatherShape {
  Target target;
  uint64_t rows;
  uint64_t cols;
  std::string_view form;  // of RowGather, and of RowsGather where it is not dense
};
std::vector<GatherShape> gather_shapes() {
  return {{testing::t32(), 10, 5, "flat"},  {testing::t32(), 7, 300, "flat"},  {testing::t32(), 10, 32, "tile"},
          {testing::t32(), 4, 640, "tile"}, {testing::t32(), 40, 20, "dense"}, {testing::t32(), 33, 300, "dense"},
          {testing::t4(), 4, 3, "flat"},    {testing::t4(), 5, 11, "flat"},    {testing::t4(), 1, 1, "flat"},
          {testing::t4(), 3, 4, "tile"},    {testing::t4(), 3, 44, "tile"},    {testing::t4(), 9, 6, "dense"},
          {testing::t4(), 8, 20, "dense"},  {testing::t1(), 6, 5, "tile"},     {testing::t1(), 3, 70, "tile"},
          {testing::t1(), 5, 3, "dense"},   {testing::tall(), 20, 6, "dense"}, {testing::tall(), 20, 6, "flat"},
          {testing::tall(), 3, 8, "tile"},  {testing::t16(), 9, 16, "tile"},   {testing::t16(), 3, 50, "flat"},
          {testing::t4f(), 5, 11, "flat"}};
}

// Rows 1 and last, a literal and a name, reals and integers; a row before and one after the table.
TEST(RowGather, EveryFormTakesTheRowAndRefusesTheOthers) {
  for (const GatherShape& shape : gather_shapes()) {
    for (const bool integer : {false, true}) {
      SCOPED_TRACE(::testing::Message() << shape.target.name << " " << shape.rows << "x" << shape.cols);
      CaseOperand table = table_of(shape.rows, shape.cols, integer);
      table.tensor.dense = shape.form == "dense";
      const auto last = static_cast<uint32_t>(shape.rows);
      for (const uint32_t row : {uint32_t{1}, last / 2 + 1, last}) {
        const Lowered lowered = expect_lowers(literal(table, row), shape.target);
        EXPECT_EQ(lowered.form, shape.form);
        EXPECT_TRUE(lowered.sections.at(0).claim.exact);
        EXPECT_EQ(expect_lowers(named(table, row), shape.target).form, shape.form);
      }
      for (const uint32_t row : {uint32_t{0}, last + 1}) {
        EXPECT_THAT(expect_refused(literal(table, row), shape.target).reason, HasSubstr("expected 1 to"));
        expect_fault(named(table, row), shape.target);
      }
    }
  }
}

TEST(RowGather, OnlyWhatHoldsTheRowIsMoved) {
  const auto loaded = [](const OpCase& c, const Target& target) {
    return testing::run(expect_lowers(c, target).sections, c, target).tiles_loaded;
  };
  // A row of 11 in tiles of 4 lies in at most 4 of them; the index is one more.
  EXPECT_LE(loaded(literal(table_of(50, 7), 30), testing::t4()), 3U);
  EXPECT_EQ(loaded(named(table_of(50, 7), 30), testing::t4()), 3U + 1U);
  EXPECT_EQ(loaded(literal(table_of(50, 8), 30), testing::t4()), 2U);
}

TEST(RowGather, WhatIsNoNumberIsCopied) {
  for (const uint64_t cols : {4, 7}) {
    CaseOperand table = table_of(3, cols);
    table.values[cols] = testing::kInf;
    table.values[cols + 1] = -testing::kInf;
    table.values[cols + 2] = std::nan("");
    table.values[cols + 3] = -0.0;
    for (const bool dense : {false, true}) {
      table.tensor.dense = dense;
      expect_lowers(named(table, 2), testing::t4());
      expect_lowers(literal(table, 2), testing::t4());
    }
  }
}

TEST(RowGather, IntegersNeedNoRealDatapath) {
  for (const uint64_t cols : {4, 7}) {
    CaseOperand table = table_of(3, cols, true);
    for (const bool dense : {false, true}) {
      table.tensor.dense = dense;
      expect_lowers(named(table, 3), testing::without_reals());
    }
    EXPECT_EQ(expect_refused(named(table_of(3, cols), 3), testing::without_reals()).kind, RefusalKind::Missing);
  }
}

// The arithmetic on a row number is as wide as its intermediates, and refused where the target has none so wide.
TEST(RowGather, IndicesAreNeverWrapped) {
  const Target narrow = testing::narrow_integers();
  expect_lowers(named(table_of(12, 5), 12), narrow);
  expect_lowers(named(table_of(125, 4), 125), narrow);
  const Refusal rows = expect_refused(named(table_of(200, 4), 3), narrow);
  EXPECT_EQ(rows.kind, RefusalKind::Missing);
  EXPECT_THAT(rows.reason, HasSubstr("an i16"));
  EXPECT_THAT(expect_refused(named(table_of(40, 5), 3), narrow).reason, HasSubstr("200"));
  OpCase far = named(table_of(4, 3), 1);
  far.operands[1] = index("i", 1000);
  expect_fault(far, testing::t4());
  far.operands[1] = index("i", -1000);
  expect_fault(far, testing::t4());
}

// What an index is stored as is the caller's word; the arithmetic is as wide as it has to be.
TEST(RowGather, AnIndexIsLoadedAsItIsStored) {
  for (const Precision dtype : {Precision::I8, Precision::I16, Precision::I32}) {
    for (const uint64_t cols : {3, 4, 90}) {
      for (const bool dense : {false, true}) {
        OpCase c = named(table_of(9, cols), 9);
        c.operands[0]->tensor.dense = dense;
        c.operands[1]->tensor.dtype = dtype;
        const Lowered lowered = expect_lowers(c, testing::t4());
        for (const Tensor& tensor : lowered.sections.at(0).tensors)
          EXPECT_TRUE(tensor.name != "i" || tensor.dtype == dtype);
        c.operands[1]->values[0] = 10;
        expect_fault(c, testing::t4());
      }
    }
  }
}

TEST(RowGather, ATableThatDoesNotFitASiteIsNotLoadedWhole) {
  EXPECT_EQ(expect_lowers(named(table_of(300, 7), 300), testing::t4_with(4096)).form, "flat");
  EXPECT_EQ(expect_refused(named(table_of(3, 7), 3), testing::t4_with(100)).kind, RefusalKind::TooLarge);
}

TEST(RowsGather, EveryFormTakesTheRowsAndRefusesTheOthers) {
  for (const GatherShape& shape : gather_shapes()) {
    for (const bool integer : {false, true}) {
      SCOPED_TRACE(::testing::Message() << shape.target.name << " " << shape.rows << "x" << shape.cols);
      CaseOperand table = table_of(shape.rows, shape.cols, integer);
      const auto last = static_cast<int64_t>(shape.rows);
      if (shape.form == "dense") {
        table.tensor.dense = true;
        EXPECT_THAT(expect_refused(several(table, {1}), shape.target).reason, HasSubstr("lies dense"));
        continue;
      }
      EXPECT_EQ(expect_lowers(several(table, {last}), shape.target).form, shape.form);
      expect_lowers(several(table, {1, last, last / 2 + 1, 1, last}), shape.target);
      expect_fault(several(table, {1, 0, last}), shape.target);
      expect_fault(several(table, {1, last + 1}), shape.target);
    }
  }
}

TEST(RowsGather, BothFormsAgreeAndALongIndexIsRefused) {
  const OpCase c = several(table_of(10, 4), {3, 10, 1, 3});
  const Target target = testing::t4();
  const OpView view = testing::view_of(c, target);
  expect_equal(rows_gather_flat(view), c, target);
  expect_equal(rows_gather_tile(view), c, target);
  // Eight indices are a page of T4.
  expect_lowers(several(table_of(10, 3), {1, 2, 3, 4, 5, 6, 7, 8}), testing::t4());
  const Refusal refusal = expect_refused(several(table_of(10, 3), {1, 2, 3, 4, 5, 6, 7, 8, 9}), testing::t4());
  EXPECT_EQ(refusal.kind, RefusalKind::TooLarge);
  expect_lowers(several(table_of(10, 4), {1, 2, 3, 4, 5, 6, 7, 8, 9}), testing::t4());
}

// The permutation of a permutation.
TEST(RowsGather, ATableMayBeItsOwnIndex) {
  for (const Target& target : {testing::t4(), testing::t1()}) {
    CaseOperand permutation = integers("p", 5, 1, 1, 1, 6);
    permutation.values = {3, 1, 5, 2, 4};
    expect_lowers({graph::RowsGather{}, {permutation, permutation}}, target);
  }
}

// A vocabulary's row and rows on the main target.
TEST(RowsGather, AnEmbeddingMovesItsRowsAlone) {
  const OpCase c = several(table_of(500, 1024), {500, 1, 77});
  const Lowered lowered = expect_lowers(c, testing::t32());
  const testing::Outcome outcome = testing::run(lowered.sections, c, testing::t32());
  EXPECT_EQ(outcome.tiles_loaded, 3U * 4 * (8 + 2));
}

}  // namespace
}  // namespace tw::spatial::lower
