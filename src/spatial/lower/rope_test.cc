#include "spatial/lower/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_equal;
using testing::expect_fault;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::index;
using testing::OpCase;
using testing::reals;

struct RopeShape {
  Target target;
  uint64_t rows;
  uint64_t heads;  // of a row
  uint32_t width;
  uint32_t half;
  uint64_t cache;
  std::string_view form;
};

OpCase rope_of(const RopeShape& s) {
  return {graph::Rope{s.width, s.half},
          {reals("q", s.rows, s.heads * s.width, s.width), reals("cos", s.cache, s.half, 2, -1, 1),
           reals("sin", s.cache, s.half, 3, -1, 1), std::nullopt}};
}
OpCase rope_of(const RopeShape& s, int64_t position) {
  OpCase c = rope_of(s);
  c.operands[3] = index("p", position, s.cache + 2);
  return c;
}
const graph::Rope& spec_of(const OpCase& c) { return std::get<graph::Rope>(c.spec); }

std::vector<RopeShape> rope_shapes() {
  return {{testing::t32(), 1, 2, 8, 4, 1, "flat"},       {testing::t32(), 1, 2, 8, 3, 5, "flat"},
          {testing::t32(), 2, 2, 16, 8, 5, "flat"},      {testing::t32(), 2, 1, 64, 32, 6, "flat"},
          {testing::t32(), 1, 2, 64, 32, 6, "flat"},     {testing::t32(), 1, 3, 256, 128, 9, "per head"},
          {testing::t32(), 2, 6, 64, 32, 7, "per head"}, {testing::t32(), 2, 6, 64, 16, 7, "per head"},
          {testing::t32(), 1, 6, 64, 16, 7, "per head"}, {testing::t32(), 1, 4, 80, 40, 9, "per head"},
          {testing::t32(), 3, 4, 80, 40, 9, "per head"}, {testing::t32(), 1, 3, 80, 40, 9, "flat"},
          {testing::t32(), 1, 3, 80, 16, 9, "flat"},     {testing::t32f(), 2, 3, 112, 28, 9, "flat"},
          {testing::t4(), 1, 2, 4, 2, 1, "flat"},        {testing::t4(), 1, 2, 4, 1, 4, "flat"},
          {testing::t4(), 2, 1, 4, 2, 4, "flat"},        {testing::t4(), 1, 1, 8, 4, 5, "flat"},
          {testing::t4(), 2, 1, 4, 2, 50, "flat"},       {testing::t4(), 1, 2, 6, 3, 5, "flat"},
          {testing::t4(), 2, 2, 6, 2, 5, "flat"},        {testing::t4(), 1, 1, 12, 6, 5, "flat"},
          {testing::t4(), 3, 3, 4, 2, 6, "per head"},    {testing::t4(), 2, 2, 8, 4, 5, "per head"},
          {testing::t4(), 2, 4, 2, 1, 9, "per head"},    {testing::t4(), 1, 4, 4, 2, 9, "per head"},
          {testing::t1(), 3, 2, 6, 3, 5, "flat"},        {testing::t1(), 3, 4, 10, 3, 5, "per head"},
          {testing::t1(), 1, 1, 70, 35, 5, "flat"},      {testing::t1(), 2, 1, 70, 20, 5, "flat"},
          {testing::tall(), 3, 3, 4, 2, 6, "per head"},  {testing::t16(), 2, 3, 16, 6, 6, "per head"},
          {testing::t16(), 1, 3, 10, 5, 6, "flat"}};
}

// From the tables' first row when nothing is named, from a named row at either end, and from a literal one, which only
// the forms can be told.
TEST(Rope, EveryFormFromEveryPosition) {
  for (const RopeShape& s : rope_shapes()) {
    SCOPED_TRACE(::testing::Message() << s.target.name << " " << s.rows << "x" << s.heads << "x" << s.width << " half "
                                      << s.half << " cache " << s.cache);
    const auto last = static_cast<int64_t>(s.cache + 1 - s.rows);
    EXPECT_EQ(expect_lowers(rope_of(s), s.target).form, s.form);
    for (const int64_t position : {int64_t{1}, last / 2 + 1, last}) {
      const OpCase named = rope_of(s, position), bare = rope_of(s);
      EXPECT_EQ(expect_lowers(named, s.target).form, s.form);
      const OpView view = testing::view_of(bare, s.target);
      const auto literal = static_cast<uint64_t>(position);
      expect_equal(rope_flat(spec_of(bare), view, literal), named, s.target);
      if (rope_heads_an_item(spec_of(bare), view) > 0)
        expect_equal(rope_heads(spec_of(bare), view, literal), named, s.target);
    }
    for (const int64_t position : {int64_t{0}, last + 1, int64_t{-3}}) expect_fault(rope_of(s, position), s.target);
    const OpView view = testing::view_of(rope_of(s), s.target);
    for (const uint64_t position : {uint64_t{0}, static_cast<uint64_t>(last) + 1}) {
      const Result<Program> refused = rope_flat(spec_of(rope_of(s)), view, position);
      ASSERT_FALSE(refused.ok());
      EXPECT_THAT(refused.refusal().reason, HasSubstr("expected 1 to"));
    }
  }
}

TEST(Rope, FormsAgreeInBits) {
  for (const RopeShape& s :
       {RopeShape{testing::t4f(), 3, 3, 4, 2, 6, ""}, RopeShape{testing::t4f(), 2, 2, 8, 4, 6, ""},
        RopeShape{testing::t4f(), 2, 4, 2, 1, 6, ""}, RopeShape{testing::t32f(), 2, 4, 80, 40, 9, ""}}) {
    const OpCase c = rope_of(s, 3);
    const OpView view = testing::view_of(c, s.target);
    const Result<Program> flat = rope_flat(spec_of(c), view), heads = rope_heads(spec_of(c), view);
    ASSERT_TRUE(flat.ok() && heads.ok());
    const testing::Outcome a = testing::run({*flat}, c, s.target), b = testing::run({*heads}, c, s.target);
    EXPECT_FALSE(a.values.empty());
    EXPECT_EQ(a.values, b.values);
  }
}

// However long the tables, only the rows that turn something are moved.
TEST(Rope, OnlyTheRowsOfTheBlockAreLoaded) {
  const auto loaded = [](const RopeShape& s) {
    const OpCase c = rope_of(s, 700);
    return testing::run(expect_lowers(c, s.target).sections, c, s.target).tiles_loaded;
  };
  EXPECT_EQ(loaded({testing::t4(), 1, 1, 8, 4, 900, ""}), 2U + 1 + 2 * 1);    // q, position, a tile of each table
  EXPECT_EQ(loaded({testing::t4(), 2, 1, 4, 2, 900, ""}), 2U + 1 + 2 * 2);    // rows of 2 anywhere: two tiles
  EXPECT_EQ(loaded({testing::t4(), 2, 2, 8, 4, 900, ""}), 4U * (2 + 1 + 2));  // an item each of four heads
}

TEST(Rope, AnAngleOfZeroChangesNothing) {
  OpCase c = rope_of({testing::t4f(), 2, 3, 4, 2, 6, ""}, 2);
  c.operands[1]->values.assign(12, 1.0);
  c.operands[2]->values.assign(12, 0.0);
  const Target target = testing::t4f();
  EXPECT_EQ(testing::run(expect_lowers(c, target).sections, c, target).values, *testing::reference(c, target));
  const std::vector<double> values = testing::run(expect_lowers(c, target).sections, c, target).values;
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(static_cast<float>(values[i]), static_cast<float>(c.operands[0]->values[i]));
}

TEST(Rope, OneTableMayServeAsBothAndTablesMayBeWider) {
  OpCase c = rope_of({testing::t32(), 2, 6, 64, 16, 7, ""}, 3);
  c.operands[2] = c.operands[1];
  expect_lowers(c, testing::t32());
  for (const size_t table : {1, 2}) c.operands[table]->tensor.dtype = Precision::F32;
  expect_lowers(c, testing::t32());
}

TEST(Rope, RefusesWhatTheTargetLacks) {
  EXPECT_EQ(expect_refused(rope_of({testing::t4(), 1, 2, 4, 2, 3, ""}), testing::without_reals()).kind,
            RefusalKind::Missing);
  EXPECT_THAT(expect_refused(rope_of({testing::t4(), 1, 2, 4, 2, 100, ""}, 3), testing::narrow_integers()).reason,
              HasSubstr("an i16"));
  EXPECT_EQ(expect_refused(rope_of({testing::t4(), 1, 2, 4, 2, 3, ""}), testing::t4_with(64)).kind,
            RefusalKind::TooLarge);
}

// A head of an attention of the largest model that is listed, and a block of its rows.
TEST(Rope, HeadsOfAModel) {
  EXPECT_EQ(expect_lowers(rope_of({testing::t32(), 1, 24, 256, 32, 100, ""}, 99), testing::t32()).form, "per head");
  EXPECT_EQ(expect_lowers(rope_of({testing::t32(), 3, 16, 128, 64, 40, ""}, 38), testing::t32()).form, "per head");
}

}  // namespace
}  // namespace tw::spatial::lower
