#include "spatial/lower/lut_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/attention_case.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_fault;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::integers;
using testing::OpCase;

struct Setting {
  uint64_t heads = 2, kv_heads = 1, key_width = 4, value_width = 4, cached = 6, entries = 16;
  int32_t multiplier = 3;
  uint32_t shift = 2;
  std::optional<int64_t> position{};
  bool literal = false;
};

OpCase lut(const Setting& s, uint64_t seed) {
  OpCase made{graph::LutAttention{.heads = static_cast<uint32_t>(s.heads),
                                  .kv_heads = static_cast<uint32_t>(s.kv_heads),
                                  .multiplier = s.multiplier,
                                  .shift = s.shift},
              {integers("q", 1, s.heads * s.key_width, seed, -8, 8),
               integers("k", s.cached, s.kv_heads * s.key_width, seed + 1, -8, 8),
               integers("v", s.cached, s.kv_heads * s.value_width, seed + 2, -8, 8),
               integers("e", 1, s.entries, seed + 3, 1, 100), std::nullopt}};
  if (s.position)
    made.operands[4] =
        s.literal ? testing::literal_index("p", *s.position) : testing::index("p", *s.position, s.cached);
  return made;
}

// Shapes within a page and wide ones, on every tile.
std::vector<Setting> lut_settings() {
  return {{},
          {.cached = 4, .position = 1},
          {.cached = 4, .position = 4},
          {.cached = 4, .position = 3, .literal = true},
          {.heads = 4, .kv_heads = 2, .key_width = 3, .value_width = 5, .position = 2},
          {.heads = 3, .kv_heads = 3, .key_width = 1, .value_width = 1, .cached = 1, .entries = 1, .position = 1},
          {.heads = 4, .kv_heads = 2, .key_width = 5, .value_width = 7, .cached = 13, .position = 9},
          {.heads = 2, .kv_heads = 2, .cached = 11, .multiplier = -1, .shift = 0},
          {.cached = 7, .multiplier = 1000, .shift = 3, .position = 7}};
}

TEST(LutAttention, IsExactInEveryShape) {
  uint64_t seed = 0;
  for (const Setting& setting : lut_settings())
    for (const Target& target :
         {testing::t4(), testing::t32(), testing::t1(), testing::tall(), testing::without_reals()}) {
      const Lowered lowered = expect_lowers(lut(setting, ++seed), target);
      ASSERT_EQ(lowered.sections.size(), 3U);
      for (const Program& section : lowered.sections) EXPECT_TRUE(section.claim.exact);
      if (HasFailure()) FAIL() << "setting " << seed << " on " << target.name;
    }
}

TEST(LutAttention, AModelsHeadIsCutIntoBlocksOfColumns) {
  const Setting setting{.heads = 8, .kv_heads = 2, .key_width = 16, .value_width = 40, .cached = 70, .position = 65};
  const Lowered lowered = expect_lowers(lut(setting, 1), testing::t32());
  EXPECT_EQ(lowered.form, "integer, by columns");
  for (const Program& section : lowered.sections) EXPECT_GT(section.work.items.size(), 1U) << section.name;
}

TEST(LutAttention, APositionOutsideTheCacheFaultsOrIsRefused) {
  for (const int64_t position : {-1, 0, 7})
    for (const Target& target : {testing::t4(), testing::t1()}) {
      expect_fault(lut({.position = position}, 1), target);
      const Refusal refusal = expect_refused(lut({.position = position, .literal = true}, 1), target);
      EXPECT_EQ(refusal.subject, "y");
      EXPECT_THAT(refusal.reason, HasSubstr("must be 1 to 6"));
    }
}

TEST(LutAttention, APositionIsCheckedAsWideAsItIsStored) {
  OpCase c = lut({.cached = 4, .position = 3}, 1);
  c.operands[4]->tensor.dtype = Precision::I16;
  expect_lowers(c, testing::t4());
  expect_lowers(c, testing::without_reals());
}

TEST(LutAttention, WeightsThatSumToNothingAreAFault) {
  OpCase made = lut({}, 1);
  made.operands[3] = integers("e", 1, 16, 1, 0, 1);
  expect_fault(made, testing::t4());
}

TEST(LutAttention, RefusesWhatNoTargetCanHold) {
  const Refusal narrow =
      expect_refused(lut({.heads = 4, .kv_heads = 2, .cached = 60, .position = 3}, 1), testing::narrow_integers());
  EXPECT_EQ(narrow.kind, RefusalKind::Missing);
  const OpCase c = lut({}, 1);
  const Target target = testing::t4();
  OpView view = testing::view_of(c, target);
  view.operands[3]->cols = 0;
  EXPECT_THAT(lower(std::get<graph::LutAttention>(c.spec), view).refusal().reason, HasSubstr("0 weights"));
  Target reals = testing::t4();
  reals.integer_element.reset();
  reals.integer_accumulator.reset();
  const Refusal refusal = expect_refused(lut({}, 1), reals);
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_EQ(refusal.subject, "y");
}

}  // namespace
}  // namespace tw::spatial::lower
