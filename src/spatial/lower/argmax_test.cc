#include "spatial/lower/argmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/testing.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_equal;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::integers;
using testing::OpCase;
using testing::reals;

OpCase argmax_of(uint64_t rows, uint64_t cols, uint64_t seed = 1) {
  return {graph::ArgMax{}, {reals("x", rows, cols, seed)}};
}
// Few distinct values, so that every maximum is there several times.
OpCase ties(uint64_t rows, uint64_t cols, uint64_t seed = 1) {
  OpCase c = argmax_of(rows, cols, seed);
  for (double& value : c.operands[0]->values) value = std::round(value);
  return c;
}

struct ArgmaxShape {
  Target target;
  uint64_t rows;
  uint64_t cols;
};
std::vector<ArgmaxShape> argmax_shapes() {
  std::vector<ArgmaxShape> all;
  for (const uint64_t n : {1, 33, 256, 257, 300, 2049}) all.push_back({testing::t32(), 1, n});
  for (const uint64_t n : {1, 5, 8, 9, 12, 17, 65, 200}) all.push_back({testing::t4(), 1, n});
  for (const uint64_t m : {3, 4, 9}) all.insert(all.end(), {{testing::t4(), m, 7}, {testing::t4(), m, 30}});
  for (const uint64_t m : {3, 8, 17}) all.insert(all.end(), {{testing::tall(), m, 7}, {testing::tall(), m, 30}});
  for (const uint64_t n : {5, 64, 65, 200}) all.insert(all.end(), {{testing::t1(), 1, n}, {testing::t1(), 3, n}});
  all.insert(all.end(), {{testing::t16(), 18, 50}, {testing::t32(), 33, 300}, {testing::t32f(), 2, 700}});
  all.insert(all.end(), {{spatial::testing::shipped_target("fabric"), 2, 100},
                         {spatial::testing::shipped_target("fabric"), 1, 20}});
  return all;
}

TEST(ArgMax, TheFirstMaximumOfEveryRow) {
  for (const ArgmaxShape& s : argmax_shapes()) {
    SCOPED_TRACE(::testing::Message() << s.target.name << " " << s.rows << "x" << s.cols);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Lowered lowered = expect_lowers(ties(s.rows, s.cols, seed), s.target);
      EXPECT_EQ(lowered.form, s.target.wide(s.cols) ? "blocked" : "rows");
      expect_lowers({graph::ArgMax{}, {integers("x", s.rows, s.cols, seed, -3, 3)}}, s.target);
    }
    expect_lowers(argmax_of(s.rows, s.cols, 9), s.target);
  }
}

// A NaN in front of the row stays; elsewhere, also in front of a block, it never wins. Rows of nothing but -inf, and of
// less than any mask but -inf would be, are rows like others.
TEST(ArgMax, WhatIsNoNumberAndWhatIsLeast) {
  for (const ArgmaxShape& s : argmax_shapes()) {
    if (s.target.real_element == Precision::Fx16) continue;
    SCOPED_TRACE(::testing::Message() << s.target.name << " " << s.rows << "x" << s.cols);
    const uint64_t block = s.target.accumulator_tiles * s.target.tile.cols;
    OpCase c = ties(s.rows, s.cols);
    std::vector<double>& values = c.operands[0]->values;
    for (uint64_t i = block; i < s.cols; i += block) values[i] = std::nan("");
    values[s.cols / 2] = std::nan("");
    expect_lowers(c, s.target);
    values[0] = std::nan("");
    expect_lowers(c, s.target);
    values.assign(values.size(), -testing::kInf);
    expect_lowers(c, s.target);
    values.back() = -2e30;
    expect_lowers(c, s.target);
    values.assign(values.size(), -2e30);
    expect_lowers(c, s.target);
    values.assign(values.size(), std::nan(""));
    expect_lowers(c, s.target);
  }
}

TEST(ArgMax, IntegersAtTheLeastOfTheirKind) {
  for (const uint64_t n : {5, 30, 200}) {
    OpCase c{graph::ArgMax{}, {integers("x", 2, n, 1, -5, 5)}};
    c.operands[0]->tensor.dtype = Precision::I8;
    c.operands[0]->values.assign(2 * n, -128);
    expect_lowers(c, testing::t4());
    c.operands[0]->values[n - 1] = -127;
    expect_lowers(c, testing::t4());
    expect_lowers(c, testing::without_reals());
  }
}

// What is stored wider decides wider.
TEST(ArgMax, ScansWhatIsStored) {
  for (const uint64_t n : {8, 30}) {
    OpCase c = argmax_of(1, n);
    c.operands[0]->tensor.dtype = Precision::F32;
    c.operands[0]->values.assign(n, 1.0);
    c.operands[0]->values[n - 2] = 1.0 + 0x1p-20;
    const Target target = testing::t4();
    EXPECT_THAT(testing::run(expect_lowers(c, target).sections, c, target).values,
                ::testing::ElementsAre(static_cast<double>(n - 1)));
  }
}

TEST(ArgMax, BothFormsAgree) {
  for (const ArgmaxShape& s :
       {ArgmaxShape{testing::t4(), 1, 7}, ArgmaxShape{testing::t4(), 5, 8}, ArgmaxShape{testing::tall(), 9, 3}}) {
    const OpCase c = ties(s.rows, s.cols);
    const OpView view = testing::view_of(c, s.target);
    expect_equal(argmax_rows(view), c, s.target);
    expect_equal(argmax_blocked(view), c, s.target);
  }
}

TEST(ArgMax, MergesAreEven) {
  const std::pair<uint64_t, std::vector<uint64_t>> cases[] = {{1, {}},      {2, {2}},        {8, {8}},
                                                              {9, {3, 3}},  {16, {4, 4}},    {17, {5, 4}},
                                                              {31, {6, 6}}, {65, {5, 4, 4}}, {970, {6, 6, 6, 5}}};
  for (const auto& [blocks, fans] : cases) EXPECT_EQ(merge_fans(blocks, 8), fans) << blocks;
  for (uint64_t most = 2; most <= 9; ++most)
    for (uint64_t blocks = 2; blocks <= 700; ++blocks) {
      uint64_t slots = 1;
      for (const uint64_t fan : merge_fans(blocks, most)) {
        EXPECT_LE(fan, most);
        slots *= fan;
      }
      EXPECT_GE(slots, blocks);
    }
}

// A long row: 258 blocks and three levels of merges.
TEST(ArgMax, ALongRow) {
  const Lowered lowered = expect_lowers(argmax_of(1, 66'000), testing::t32());
  EXPECT_EQ(lowered.sections.size(), 1U + merge_fans(258, 8).size());
}

TEST(ArgMax, RefusesWhatTheTargetLacks) {
  Target target = testing::t4();
  target.capabilities.erase(Capability::ArgMax);
  EXPECT_THAT(expect_refused(argmax_of(1, 5), target).reason, HasSubstr("argmax"));
  EXPECT_EQ(expect_refused(argmax_of(1, 5), testing::without_reals()).kind, RefusalKind::Missing);
  EXPECT_THAT(expect_refused(argmax_of(1, 200), testing::narrow_integers()).reason, HasSubstr("an i16"));
  EXPECT_EQ(expect_refused(argmax_of(1, 8), testing::t4_with(64)).kind, RefusalKind::TooLarge);
}

}  // namespace
}  // namespace tw::spatial::lower
