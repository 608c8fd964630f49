#include "spatial/lower/head_matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_equal;
using testing::expect_lowers;
using testing::expect_refused;
using testing::OpCase;
using testing::reals;
using testing::view_of;

struct HeadMatmulShape {
  uint64_t rows;
  uint32_t heads;
  uint64_t in, out;
  std::string_view form;
};

OpCase head_product(const HeadMatmulShape& s, bool rows_out, bool shared) {
  return {graph::HeadMatmul{s.heads, rows_out, shared},
          {reals("x", s.rows, shared ? s.in : s.heads * s.in, s.in),
           rows_out ? reals("w", s.heads * s.out, s.in, s.out) : reals("w", s.heads * s.in, s.out, s.out)}};
}

template <class Check>
void both_ways(Check&& check) {
  for (const bool rows_out : {false, true})
    for (const bool shared : {false, true}) check(rows_out, shared);
}

TEST(HeadMatmul, EveryForm) {
  both_ways([](bool rows_out, bool shared) {
    for (const HeadMatmulShape& s :
         {HeadMatmulShape{1, 1, 1, 1, "flat"}, HeadMatmulShape{1, 2, 3, 4, "flat"}, HeadMatmulShape{2, 2, 5, 2, "flat"},
          HeadMatmulShape{4, 2, 9, 1, "flat"}, HeadMatmulShape{1, 2, 8, 4, "tiled"},
          HeadMatmulShape{1, 3, 4, 8, "tiled"}, HeadMatmulShape{1, 1, 4, 4, "tiled"},
          HeadMatmulShape{2, 1, 8, 4, "flat"}, HeadMatmulShape{3, 2, 8, 4, "rows"}, HeadMatmulShape{9, 2, 4, 8, "rows"},
          HeadMatmulShape{4, 3, 12, 12, "rows"}})
      EXPECT_EQ(expect_lowers(head_product(s, rows_out, shared), testing::t4()).form, s.form)
          << s.rows << " " << s.in << " " << s.out << " " << rows_out << shared;
    EXPECT_EQ(expect_lowers(head_product({2, 2, 3, 4, ""}, rows_out, shared), testing::t32()).form, "flat");
    EXPECT_EQ(expect_lowers(head_product({1, 2, 64, 32, ""}, rows_out, shared), testing::t32()).form, "tiled");
    EXPECT_EQ(expect_lowers(head_product({33, 2, 64, 32, ""}, rows_out, shared), testing::t32()).form, "rows");
    EXPECT_EQ(expect_lowers(head_product({1, 2, 3, 2, ""}, rows_out, shared), testing::t1()).form, "tiled");
    EXPECT_EQ(expect_lowers(head_product({1, 1, 8, 8, ""}, rows_out, shared), testing::tall()).form, "flat");
  });
}

TEST(HeadMatmul, FormsAgreeInBits) {
  both_ways([](bool rows_out, bool shared) {
    const graph::HeadMatmul op{2, rows_out, shared};
    const Target small = testing::t4f();
    Target twin = small;
    twin.accumulator_tiles = 64;
    for (const uint64_t rows : {1, 3, 5}) {
      const OpCase c = head_product({rows, 2, 12, 8, ""}, rows_out, shared);
      const Result<Program> flat = head_matmul_flat(op, view_of(c, twin));
      const Result<Program> tiles =
          rows == 1 ? head_matmul_tiled(op, view_of(c, small)) : head_matmul_rows(op, view_of(c, small));
      expect_equal(flat, c, twin);
      expect_equal(tiles, c, small);
      if (!flat || !tiles) continue;
      EXPECT_EQ(testing::run({*flat}, c, twin).values, testing::run({*tiles}, c, small).values);
    }
  });
}

TEST(HeadMatmul, ATensorByItself) {
  for (const uint64_t rows : {2, 4}) {
    OpCase c = head_product({rows, 1, 4, rows, ""}, true, true);
    c.operands[1] = c.operands[0];
    EXPECT_EQ(expect_lowers(c, testing::t4()).form, rows == 4 ? "rows" : "flat");
  }
}

// Latent attention: the weights never come on chip whole.
TEST(HeadMatmul, TheWeightsAreReadOncePerRow) {
  const OpCase c = head_product({1, 4, 128, 64, ""}, false, false);
  const Lowered lowered = expect_lowers(c, testing::t32());
  EXPECT_EQ(testing::run(lowered.sections, c, testing::t32()).tiles_loaded, 8U * (1 + 4 + 4));
}

TEST(HeadMatmul, WhatHasNoFormIsRefused) {
  const auto refused = [](const Result<Program>& program, RefusalKind kind) {
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.refusal().kind, kind);
    EXPECT_EQ(program.refusal().subject, "y");
  };
  const OpCase whole = head_product({1, 2, 8, 8, ""}, false, false),
               ragged = head_product({1, 2, 8, 5, ""}, false, false);
  const graph::HeadMatmul op{2, false, false};
  refused(head_matmul_tiled(op, view_of(whole, testing::tall())), RefusalKind::Unsupported);
  refused(head_matmul_rows(op, view_of(whole, testing::tall())), RefusalKind::Unsupported);
  refused(head_matmul_tiled(op, view_of(ragged, testing::t4())), RefusalKind::Unsupported);
  refused(head_matmul_tiled(op, view_of(head_product({2, 2, 8, 8, ""}, false, false), testing::t4())),
          RefusalKind::Unsupported);
  refused(head_matmul_tiled(op, view_of(whole, testing::t4_with(150))), RefusalKind::TooLarge);
  EXPECT_EQ(expect_refused(whole, testing::tall()).kind, RefusalKind::TooLarge);
  EXPECT_EQ(expect_refused(ragged, testing::t4()).kind, RefusalKind::TooLarge);
  EXPECT_EQ(expect_refused(head_product({1, 1, 3, 3, ""}, false, false), testing::t4_with(200)).kind,
            RefusalKind::TooLarge);
  EXPECT_EQ(expect_refused(ragged, testing::without_reals()).kind, RefusalKind::Missing);

  const Target target = testing::t4();
  const OpView view = view_of(whole, target);
  for (const graph::HeadMatmul& wrong : {graph::HeadMatmul{0, false, false}, graph::HeadMatmul{3, false, false},
                                         graph::HeadMatmul{2, false, true}, graph::HeadMatmul{4, true, false}}) {
    const Result<Lowered> lowered = lower(wrong, view);
    ASSERT_FALSE(lowered.ok());
    EXPECT_EQ(lowered.refusal().kind, RefusalKind::Unsupported);
  }
}

}  // namespace
}  // namespace tw::spatial::lower
