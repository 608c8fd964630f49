#include "spatial/lower/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_equal;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::integers;
using testing::OpCase;
using testing::reals;
using testing::view_of;

// ---- transpose ----

OpCase transpose(uint64_t rows, uint64_t cols, bool whole = false) {
  return {graph::Transpose{},
          {whole ? integers("x", rows, cols, 3, -2000000000, 2000000000) : reals("x", rows, cols, 4)}};
}

TEST(Transpose, EveryForm) {
  struct Shape {
    uint64_t rows, cols;
    std::string_view form;
  };
  for (const bool whole : {false, true}) {
    for (const auto& [rows, cols, form] :
         {Shape{2, 3, "flat"}, Shape{1, 7, "flat"}, Shape{7, 1, "flat"}, Shape{1, 1, "flat"}, Shape{2, 4, "flat"},
          Shape{1, 13, "column blocks"}, Shape{13, 1, "column blocks"}, Shape{3, 3, "tiles"}, Shape{9, 6, "tiles"},
          Shape{4, 12, "tiles"}}) {
      const Lowered lowered = expect_lowers(transpose(rows, cols, whole), testing::t4());
      EXPECT_EQ(lowered.form, form) << rows << "x" << cols;
      EXPECT_TRUE(lowered.sections[0].claim.exact);
    }
    for (const auto& [rows, cols] : {std::pair{3U, 5U}, std::pair{1U, 7U}, std::pair{9U, 5U}})
      for (const Target& target : {testing::t32(), testing::t1(), testing::tall()})
        expect_lowers(transpose(rows, cols, whole), target);
  }
  EXPECT_EQ(expect_lowers(transpose(9, 5), testing::tall()).form, "column blocks");
  EXPECT_EQ(expect_lowers(transpose(40, 33), testing::t32()).form, "tiles");
}

TEST(Transpose, FlatBlocksAndTilesAreOne) {
  for (const auto& [rows, cols] : {std::pair{2U, 3U}, std::pair{5U, 7U}, std::pair{3U, 11U}, std::pair{8U, 4U}}) {
    const OpCase c = transpose(rows, cols);
    expect_equal(transpose_flat(view_of(c, testing::t4())), c, testing::t4());
    expect_equal(transpose_flat(view_of(c, testing::t4a())), c, testing::t4a());
    expect_equal(transpose_tiles(view_of(c, testing::t4())), c, testing::t4());
  }
}

TEST(Transpose, TwiceIsTheIdentity) {
  for (const auto& [rows, cols] : {std::pair{2U, 3U}, std::pair{5U, 7U}}) {
    const OpCase c = transpose(rows, cols);
    OpCase back = transpose(cols, rows);
    back.operands[0]->values = testing::run(expect_lowers(c, testing::t4f()).sections, c, testing::t4f()).values;
    const std::vector<double> twice =
        testing::run(expect_lowers(back, testing::t4f()).sections, back, testing::t4f()).values;
    std::vector<double> once = c.operands[0]->values;
    for (double& value : once) value = round_to(Precision::F32, value);
    EXPECT_EQ(twice, once);
  }
}

TEST(Transpose, TilesThatAreNotSquareAreRefused) {
  const Result<Program> tiles = transpose_tiles(view_of(transpose(9, 9), testing::tall()));
  ASSERT_FALSE(tiles.ok());
  EXPECT_EQ(tiles.refusal().kind, RefusalKind::Unsupported);
  EXPECT_EQ(tiles.refusal().subject, "y");
  EXPECT_EQ(expect_refused(transpose(2, 3), testing::without_reals()).kind, RefusalKind::Missing);
}

TEST(Transpose, ARowThatDoesNotFitASiteIsRefused) {
  const Refusal refusal = expect_refused(transpose(1, 40), testing::t4_with(200));
  EXPECT_EQ(refusal.kind, RefusalKind::TooLarge);
  EXPECT_EQ(refusal.subject, "y");
}

TEST(Transpose, NarrowingIsNotExact) {
  const auto made = [](Precision from, Precision to) {
    OpCase c = transpose(2, 3);
    c.operands[0]->tensor.dtype = from;
    const Target target = testing::t4();
    OpView view = view_of(c, target);
    view.result.dtype = to;
    const Result<Program> program = transpose_flat(view);
    expect_equal(program, c, testing::t4());
    return program.ok() && program->claim.exact;
  };
  EXPECT_FALSE(made(Precision::F32, Precision::Bf16));
  EXPECT_TRUE(made(Precision::Bf16, Precision::F32));
  EXPECT_TRUE(made(Precision::F32, Precision::F32));
}

// ---- head slice ----

struct Slice {
  uint32_t every, from, width;
  uint64_t groups;
  std::string_view form;
};

OpCase head_slice(const Slice& s, uint64_t rows, bool whole = false) {
  const uint64_t cols = s.every * s.groups;
  return {graph::HeadSlice{s.every, s.from, s.width},
          {whole ? integers("x", rows, cols, 3, -2000000000, 2000000000) : reals("x", rows, cols, 4)}};
}

constexpr Slice kSmallSlices[] = {
    {3, 1, 2, 4, "flat"},          {3, 0, 1, 1, "flat"},           {1, 0, 1, 5, "flat"},
    {5, 2, 3, 4, "column blocks"}, {5, 0, 3, 7, "column blocks"},  {7, 0, 7, 3, "column blocks"},
    {12, 8, 4, 3, "tiles"},        {12, 0, 12, 2, "tiles"},        {44, 0, 44, 2, "tiles"},
    {12, 4, 8, 1, "tiles"},        {12, 6, 4, 3, "column blocks"}, {8, 4, 4, 2, "tiles"}};

TEST(HeadSlice, EveryForm) {
  for (const Slice& s : kSmallSlices)
    for (const bool whole : {false, true}) {
      const Lowered lowered = expect_lowers(head_slice(s, 1, whole), testing::t4());
      EXPECT_EQ(lowered.form, s.form) << s.every << ", " << s.from << ", " << s.width;
      EXPECT_TRUE(lowered.sections[0].claim.exact);
    }
  for (const Slice& s : {Slice{3, 1, 2, 4, ""}, Slice{5, 2, 3, 4, ""}, Slice{4, 0, 4, 2, ""}}) {
    expect_lowers(head_slice(s, 3), testing::t4());
    expect_lowers(head_slice(s, 2), testing::tall());
    expect_lowers(head_slice(s, 2), testing::t1());
  }
  EXPECT_EQ(expect_lowers(head_slice({3, 1, 2, 4, ""}, 1), testing::t32()).form, "flat");
  EXPECT_EQ(expect_lowers(head_slice({48, 10, 33, 8, ""}, 1), testing::t32()).form, "column blocks");
  EXPECT_EQ(expect_lowers(head_slice({96, 64, 32, 5, ""}, 2), testing::t32()).form, "tiles");
}

TEST(HeadSlice, FormsAreOne) {
  for (const Slice& s : kSmallSlices) {
    const OpCase c = head_slice(s, 1);
    const graph::HeadSlice op{s.every, s.from, s.width};
    expect_equal(head_slice_flat(op, view_of(c, testing::t4())), c, testing::t4());
    expect_equal(head_slice_flat(op, view_of(c, testing::t4a())), c, testing::t4a());
    const Result<Program> tiles = head_slice_tiles(op, view_of(c, testing::t4()));
    EXPECT_EQ(tiles.ok(), s.form == "tiles");
    if (tiles) {
      expect_equal(tiles, c, testing::t4());
    } else {
      EXPECT_EQ(tiles.refusal().kind, RefusalKind::Unsupported);
    }
  }
}

TEST(HeadSlice, OfSeveralRows) {
  for (const Slice& s : {Slice{3, 1, 2, 2, "rows"}, Slice{5, 2, 3, 4, "rows"}, Slice{7, 0, 7, 3, "rows"},
                         Slice{12, 8, 4, 3, "tiles"}, Slice{8, 0, 8, 1, "tiles"}, Slice{44, 0, 44, 1, "tiles"}})
    for (const uint64_t rows : {3, 4, 9}) {
      const OpCase c = head_slice(s, rows);
      EXPECT_EQ(expect_lowers(c, testing::t4()).form, s.form) << s.every << ", " << s.from << ", " << s.width;
      const graph::HeadSlice op{s.every, s.from, s.width};
      expect_equal(head_slice_rows(op, view_of(c, testing::t4())), c, testing::t4());
      expect_equal(head_slice_rows(op, view_of(c, testing::t4a())), c, testing::t4a());
      expect_equal(head_slice_flat(op, view_of(c, testing::t4())), c, testing::t4());
      expect_lowers(c, testing::tall());
    }
  EXPECT_EQ(expect_lowers(head_slice({3, 1, 2, 1, ""}, 3), testing::t4()).form, "flat");
  EXPECT_EQ(expect_lowers(head_slice({80, 16, 48, 16, ""}, 33), testing::t32()).form, "rows");
  EXPECT_EQ(expect_lowers(head_slice({192, 128, 64, 4, ""}, 33), testing::t32()).form, "tiles");
}

TEST(HeadSlice, EveryTileIsMovedOnce) {
  const OpCase c = head_slice({44, 0, 44, 2, ""}, 1);  // 11 tiles: blocks of one
  const Lowered lowered = expect_lowers(c, testing::t4());
  EXPECT_EQ(lowered.sections[0].name, "head_slice_2x44_of_44_tiled");
  const testing::Outcome outcome = testing::run(lowered.sections, c, testing::t4());
  EXPECT_EQ(outcome.tiles_loaded, 22U);
  EXPECT_EQ(outcome.tiles_stored, 22U);
}

TEST(HeadSlice, WhatIsNoSliceIsRefused) {
  OpCase c = head_slice({4, 0, 2, 3, ""}, 1);
  const Target target = testing::t4();
  const OpView view = view_of(c, target);
  for (const graph::HeadSlice& op : {graph::HeadSlice{4, 3, 2}, graph::HeadSlice{0, 0, 1}, graph::HeadSlice{4, 0, 0},
                                     graph::HeadSlice{5, 0, 2}, graph::HeadSlice{4, 4294967295U, 2}}) {
    const Result<Lowered> lowered = lower(op, view);
    ASSERT_FALSE(lowered.ok());
    EXPECT_EQ(lowered.refusal().kind, RefusalKind::Unsupported);
    EXPECT_EQ(lowered.refusal().subject, "y");
  }
  EXPECT_EQ(expect_refused(c, testing::without_reals()).kind, RefusalKind::Missing);
  EXPECT_EQ(expect_refused(head_slice({5, 2, 3, 4, ""}, 1), testing::t4_with(150)).kind, RefusalKind::TooLarge);
}

TEST(HeadSlice, ALatentAttention) {
  const Lowered lowered = expect_lowers(head_slice({576, 512, 64, 16, ""}, 1), testing::t32());
  EXPECT_EQ(lowered.form, "tiles");
  EXPECT_EQ(lowered.sections[0].work.items.size(), 16U);
}

}  // namespace
}  // namespace tw::spatial::lower
