#include "spatial/lower/set_rows.h"

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

struct SetRowsShape {
  Target target;
  uint64_t rows;
  uint64_t cols;
  uint64_t count;
  std::string_view form;
};

CaseOperand operand(std::string name, uint64_t rows, uint64_t cols, bool integer) {
  return integer ? integers(std::move(name), rows, cols, rows + cols, -100, 100)
                 : reals(std::move(name), rows, cols, rows + cols);
}
OpCase set_literal(const SetRowsShape& shape, uint32_t row, bool integer = false) {
  OpCase c{graph::SetRows{row},
           {operand("t", shape.rows, shape.cols, integer), operand("s", shape.count, shape.cols, integer), {}}};
  c.operands[0]->tensor.dense = shape.form.starts_with("dense");
  return c;
}
OpCase set_named(const SetRowsShape& shape, int64_t row, bool integer = false) {
  OpCase c = set_literal(shape, 0, integer);
  c.operands[2] = index("i", row, shape.rows + 1);
  return c;
}

std::vector<SetRowsShape> set_rows_shapes() {
  return {{testing::t32(), 4, 5, 1, "flat"},
          {testing::t32(), 40, 7, 1, "flat"},
          {testing::t32(), 40, 7, 3, "flat"},
          {testing::t32(), 4, 32, 1, "tile"},
          {testing::t32(), 9, 352, 3, "tile"},
          {testing::t32(), 40, 20, 1, "dense row"},
          {testing::t32(), 70, 352, 1, "dense row"},
          {testing::t32(), 70, 40, 40, "dense block"},
          {testing::t32(), 70, 352, 2, "dense block"},
          {testing::t4(), 2, 3, 1, "flat"},
          {testing::t4(), 4, 5, 1, "flat"},
          {testing::t4(), 7, 11, 3, "flat"},
          {testing::t4(), 1, 3, 1, "flat"},
          {testing::t4(), 3, 4, 1, "tile"},
          {testing::t4(), 6, 44, 3, "tile"},
          {testing::t4(), 9, 6, 1, "dense row"},
          {testing::t4(), 9, 44, 1, "dense row"},
          {testing::t4(), 9, 44, 5, "dense block"},
          {testing::t1(), 6, 5, 1, "tile"},
          {testing::t1(), 6, 5, 4, "tile"},
          {testing::t1(), 6, 5, 1, "dense row"},
          {testing::t1(), 6, 5, 4, "dense block"},
          {testing::tall(), 20, 6, 1, "dense row"},
          {testing::tall(), 20, 6, 9, "dense block"},
          {testing::tall(), 20, 6, 4, "flat"},
          {testing::t16(), 33, 16, 17, "dense block"},
          {testing::t16(), 5, 9, 2, "flat"},
          {testing::t4f(), 9, 6, 3, "dense block"}};
}

// Rows are written at both ends and in the middle, by literal and by name, reals and integers, and nowhere else. Out of
// range is never a write of nothing.
TEST(SetRows, EveryFormWritesTheRowsAloneAndRefusesTheOthers) {
  for (const SetRowsShape& shape : set_rows_shapes()) {
    for (const bool integer : {false, true}) {
      SCOPED_TRACE(::testing::Message() << shape.target.name << " " << shape.rows << "x" << shape.cols << " "
                                        << shape.count << " " << shape.form);
      const auto last = static_cast<uint32_t>(shape.rows + 1 - shape.count);
      for (const uint32_t row : {uint32_t{1}, last / 2 + 1, last}) {
        if (row > last) continue;
        const Lowered lowered = expect_lowers(set_literal(shape, row, integer), shape.target);
        EXPECT_EQ(lowered.form, shape.form);
        EXPECT_TRUE(lowered.sections.at(0).claim.exact);
        EXPECT_EQ(expect_lowers(set_named(shape, row, integer), shape.target).form, shape.form);
      }
      for (const uint32_t row : {uint32_t{0}, last + 1}) {
        EXPECT_THAT(expect_refused(set_literal(shape, row, integer), shape.target).reason, HasSubstr("expected 1 to"));
        expect_fault(set_named(shape, row, integer), shape.target);
      }
    }
  }
}

// Every table of up to 13 rows of tiles of 4, every block of it, every place for it.
TEST(SetRows, DenseBlocksOfEverySizeAtEveryPlace) {
  const Target target = testing::t4();
  for (uint64_t rows = 2; rows <= 13; ++rows)
    for (uint64_t count = 1; count <= rows; ++count) {
      OpCase c = set_named({target, rows, 6, count, "dense"}, 1);
      const Result<Program> section = set_block_dense({}, testing::view_of(c, target));
      for (uint64_t row = 1; row <= rows + 1 - count; ++row) {
        c.operands[2]->values[0] = static_cast<double>(row);
        expect_equal(section, c, target);
      }
      const auto last = static_cast<uint32_t>(rows + 1 - count);
      expect_equal(
          set_block_dense({last}, testing::view_of(set_literal({target, rows, 6, count, "dense"}, last), target)),
          set_literal({target, rows, 6, count, "dense"}, last), target);
    }
}

TEST(SetRows, ABlockMovesTheTileRowsItCanTouch) {
  const SetRowsShape shape{testing::t4(), 40, 8, 5, "dense block"};
  const OpCase c = set_named(shape, 17);
  const testing::Outcome outcome = testing::run(expect_lowers(c, shape.target).sections, c, shape.target);
  // Two tile rows of two tiles: of the table, of the source twice, and for each an index and the item's number.
  EXPECT_EQ(outcome.tiles_loaded, 2U * (3 * 2 + 2));
  EXPECT_EQ(outcome.tiles_stored, 2U * 2);
}

TEST(SetRows, WhatIsNoNumberIsWrittenAndSpreadsNowhere) {
  for (const SetRowsShape& shape : set_rows_shapes()) {
    OpCase c = set_named(shape, 1);
    c.operands[0]->values.back() = std::nan("");
    c.operands[1]->values.front() = -std::numeric_limits<double>::infinity();
    c.operands[1]->values.back() = std::nan("");
    c.operands[1]->values[1] = -0.0;
    expect_lowers(c, shape.target);
  }
}

TEST(SetRows, IntegersNeedNoRealDatapath) {
  const Target target = testing::without_reals();
  for (const SetRowsShape& shape :
       {SetRowsShape{target, 9, 6, 1, "flat"}, SetRowsShape{target, 9, 8, 2, "tile"},
        SetRowsShape{target, 9, 6, 1, "dense row"}, SetRowsShape{target, 9, 8, 5, "dense block"}}) {
    EXPECT_EQ(expect_lowers(set_named(shape, 3, true), target).form, shape.form);
    EXPECT_EQ(expect_refused(set_named(shape, 3), target).kind, RefusalKind::Missing);
  }
}

// A table holds what the source does.
TEST(SetRows, AWiderSourceMakesAWiderTable) {
  OpCase c = set_named({testing::narrow_integers(), 3, 4, 1, "tile"}, 2, true);
  c.operands[1] = integers("s", 1, 4, 3, -1000, 1000);
  EXPECT_THAT(expect_refused(c, testing::narrow_integers()).reason, HasSubstr("an i16"));
  expect_lowers(c, testing::t4());
}

TEST(SetRows, IndicesAreNeverWrapped) {
  const Target narrow = testing::narrow_integers();
  expect_lowers(set_named({narrow, 4, 5, 2, "flat"}, 3), narrow);
  expect_lowers(set_named({narrow, 100, 4, 3, "dense block"}, 98), narrow);
  EXPECT_EQ(expect_refused(set_named({narrow, 130, 4, 3, "dense block"}, 98), narrow).kind, RefusalKind::Missing);
  EXPECT_EQ(expect_refused(set_named({narrow, 30, 5, 1, "flat"}, 11), narrow).kind, RefusalKind::Missing);
  for (const SetRowsShape& shape : set_rows_shapes())
    for (const int64_t far : {-5000, 5000}) {
      OpCase c = set_named(shape, far);
      expect_fault(c, shape.target);
      c.operands[2]->tensor.dtype = Precision::I32;
      expect_fault(c, shape.target);
    }
}

TEST(SetRows, ATableThatDoesNotFitASiteIsRefusedFlatAndWrittenInTiles) {
  EXPECT_EQ(expect_refused(set_named({testing::t4(), 60, 7, 1, "flat"}, 3), testing::t4_with(2048)).kind,
            RefusalKind::TooLarge);
  expect_lowers(set_named({testing::t4(), 60, 8, 1, "tile"}, 3), testing::t4_with(2048));
  expect_lowers(set_named({testing::t4(), 60, 7, 1, "dense row"}, 3), testing::t4_with(2048));
}

TEST(SetRows, AnIndexThatIsKnownIsALiteral) {
  for (const SetRowsShape& shape :
       {SetRowsShape{testing::t4(), 9, 8, 5, "dense block"}, SetRowsShape{testing::t4(), 9, 6, 1, "dense row"},
        SetRowsShape{testing::t4(), 9, 4, 2, "tile"}, SetRowsShape{testing::t4(), 9, 5, 4, "flat"}}) {
    OpCase c = set_literal(shape, 0);
    c.operands[2] = index("i", 1);
    c.operands[2]->tensor.constant = true;
    c.operands[2]->tensor.fill = IntegerInit{1};
    expect_lowers(c, shape.target);
    c.operands[2]->tensor.fill = IntegerInit{0};
    EXPECT_EQ(expect_refused(c, shape.target).kind, RefusalKind::Malformed);
  }
}

// Several writes of one table in a step: their tables of constants are of different names or of equal contents.
TEST(SetRows, LiteralsOfOneStepDoNotMeet) {
  const Target target = testing::t4();
  for (const SetRowsShape& shape :
       {SetRowsShape{target, 9, 5, 1, "flat"}, SetRowsShape{target, 9, 5, 4, "flat"},
        SetRowsShape{target, 9, 5, 4, "dense block"}, SetRowsShape{target, 9, 4, 2, "dense block"}}) {
    std::vector<Program> sections;
    const OpCase c = set_literal(shape, 6);
    for (const uint32_t row : {1U, 3U, 6U})
      sections.push_back(*lower_op(graph::SetRows{row}, testing::view_of(c, target))->sections.begin());
    const testing::Outcome outcome = testing::run(sections, c, target);
    EXPECT_FALSE(outcome.fault.has_value());
  }
}

}  // namespace
}  // namespace tw::spatial::lower
