#include "spatial/lower/column_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "spatial/evaluate/step.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/testing.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_sound;
using ::testing::HasSubstr;

// ---- one pointwise stage, built for a target, and what it makes of given operands ----

constexpr uint64_t kElements = 112;  // of x and z: more than any map below reaches

struct Sketch {
  FlatBuild& build;
  PointwiseStage& stage;
  uint64_t n;

  [[nodiscard]] int64_t end() const { return static_cast<int64_t>(n); }
  [[nodiscard]] BufferId reals(const std::string& name) const {
    return build.input({.name = name, .cols = kElements, .fill = GivenFill{}});
  }
  // An integer row; index and bound operands are its first element.
  [[nodiscard]] BufferId integers(const std::string& name, uint64_t cols, Precision precision) const {
    return build.input({.name = name, .cols = cols, .fill = GivenFill{100}, .integer = true}, {.precision = precision});
  }
  [[nodiscard]] uint32_t index(const std::string& name, uint64_t magnitude,
                               Precision precision = Precision::I16) const {
    return stage.index(integers(name, 1, precision), fixed(0), magnitude);
  }
  // A bound of low to high, as lowerings make them: a guarded index moved by a constant. The tensor holds bound - low.
  [[nodiscard]] uint32_t bound(const std::string& name, int64_t low, int64_t high,
                               Precision precision = Precision::I16) const {
    const BufferId page = build.builder().scratch(name + "_bound", 1, precision, 1);
    const BufferId raw = integers(name, 1, precision);
    GenericStage moved = build.builder().compute(name + "_bound", flat(1));
    const Expr value = moved.guarded(raw, static_cast<uint64_t>(high - low) + 1);
    moved.write(page, value + static_cast<double>(low));
    return stage.index(page, fixed(0), static_cast<uint64_t>(std::max(-low, high)));
  }
};
using Body = std::function<Expr(const Sketch&)>;

Result<Program> built(const Target& target, uint64_t n, const Body& body) {
  const OpView view{target, {}, {.name = "y", .cols = n}};
  TW_TRY(FlatBuild build, FlatBuild::open(view, Precision::F32));
  PointwiseStage stage("pick");
  stage.body(body({build, stage, n}));
  return std::move(build).pointwise(std::move(stage), n, "pick", exact());
}

using Integers = std::map<std::string, std::vector<int64_t>>;

struct Made {
  std::optional<evaluate::Fault> fault;
  std::vector<double> values;
  bool padding_is_zero = true;
};

Made made_by(const Program& program, const Target& target, const Integers& integers) {
  evaluate::Memory memory(target.tile);
  for (const Tensor& tensor : program.tensors) {
    if (!std::holds_alternative<GivenInit>(tensor.init)) continue;
    std::vector<double> values;
    for (uint64_t i = 0; i < tensor.size(); ++i)
      values.push_back((tensor.name == "x" ? 1.0 : -1000.0) * static_cast<double>(i + 1));
    const Result<void> set = is_integer(tensor.dtype)
                                 ? memory.set(tensor, std::span<const int64_t>(integers.at(tensor.name)))
                                 : memory.set(tensor, std::span<const double>(values));
    EXPECT_TRUE(set.ok());
  }
  const std::vector<Program> sections{program};
  Result<evaluate::Step> step = evaluate::Step::compile(sections);
  EXPECT_TRUE(step.ok());
  const Result<evaluate::StepRun> run = step->run(memory, {.sections = {.poison_unwritten = true}});
  EXPECT_TRUE(run.ok());
  Made made{.fault = run->fault};
  if (made.fault) return made;
  made.values = *memory.reals("y");
  for (const std::byte code : memory.code(*memory.find("y"), target.tile.rows - 1, made.values.size() - 1))
    made.padding_is_zero = made.padding_is_zero && (target.tile.rows == 1 || code == std::byte{0});
  return made;
}

// The same target with a page that holds any row of these tests.
Target twin(Target target) {
  target.accumulator_tiles = 64;
  return target;
}

// The blocked form against the plain one of the twin, in bits.
void expect_same(const Target& target, uint64_t n, const Body& body, const Integers& integers = {}) {
  const Result<Program> blocked = built(target, n, body), plain = built(twin(target), n, body);
  ASSERT_TRUE(blocked.ok()) << to_text(blocked.refusal());
  ASSERT_TRUE(plain.ok()) << to_text(plain.refusal());
  EXPECT_GT(blocked->work.items.size(), 1U);
  EXPECT_EQ(plain->work.items.size(), 1U);
  expect_sound(*blocked, target);
  const Made got = made_by(*blocked, target, integers), want = made_by(*plain, twin(target), integers);
  ASSERT_FALSE(want.fault) << evaluate::to_text(*want.fault);
  ASSERT_FALSE(got.fault) << evaluate::to_text(*got.fault);
  EXPECT_EQ(got.values, want.values) << "n = " << n;
  EXPECT_TRUE(got.padding_is_zero);
}

void expect_both_fault(uint64_t n, const Body& body, const Integers& integers) {
  const Target target = testing::t4f();
  for (const Target& at : {target, twin(target)}) {
    const Result<Program> program = built(at, n, body);
    ASSERT_TRUE(program.ok()) << to_text(program.refusal());
    const Made made = made_by(*program, at, integers);
    ASSERT_TRUE(made.fault.has_value());
    EXPECT_EQ(made.fault->kind, evaluate::FaultKind::IndexRange);
  }
}

// Rows of 3 to 7 tiles of 4: whole and not, with blocks of 1 and 2 tiles, counts of tiles that are prime.
constexpr uint64_t kWidths[] = {9, 12, 13, 16, 17, 20, 23, 27, 28};

// A 1 x 4 tile: what lies past a flat row lies past its page.
Target flat_tile() { return spatial::testing::toy_target({1, 4}, 2); }

void expect_same_at_all_widths(const Body& body, const Integers& integers = {}) {
  for (const uint64_t n : kWidths)
    for (const Target& target : {testing::t4f(), flat_tile()}) expect_same(target, n, body, integers);
}

// ---- maps and bands ----

TEST(ColumnBlocks, BandsAndShiftedMaps) {
  expect_same_at_all_widths([](const Sketch& s) {
    const BufferId x = s.reals("x"), z = s.reals("z");
    const Band bands[] = {{3, s.stage.read(x, at(5))},
                          {7, s.stage.read(z, at(-3))},
                          {s.end() - 1, s.stage.read(x, map3(2, 0, 2))},
                          {s.end(), s.stage.read(z, fixed(7))}};
    return banded(bands);
  });
}

TEST(ColumnBlocks, AMapThatGoesBackwards) {
  expect_same_at_all_widths([](const Sketch& s) { return s.stage.read(s.reals("x"), map3(s.end() - 1, 0, -1)); });
}

TEST(ColumnBlocks, PaddingColumnsReadNothing) {
  // The operand ends where the result does, so that any read beyond leaves its page.
  for (const uint64_t n : kWidths) {
    const Body last = [](const Sketch& s) {
      return s.stage.read(s.build.input({.name = "x", .cols = s.n, .fill = GivenFill{}}), map3(s.end() - 1, 0, -1));
    };
    expect_same(flat_tile(), n, last);
    expect_same(testing::t4f(), n, last);
  }
}

TEST(ColumnBlocks, MoreBoundsThanATileHasColumns) {
  expect_same_at_all_widths([](const Sketch& s) {
    const BufferId x = s.reals("x");
    std::vector<Band> bands;
    for (int64_t b = 1; b <= 8; ++b) bands.push_back({b, s.stage.read(x, at(10 * b))});
    return banded(bands);
  });
  const Result<Program> program = built(testing::t4f(), 12, [](const Sketch& s) {
    std::vector<Band> bands;
    for (int64_t b = 1; b <= 8; ++b) bands.push_back({b, s.stage.read(s.reals("x"), at(b))});
    return banded(bands);
  });
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->tensors[1].name, "y__pick_columns");
  EXPECT_EQ(program->tensors[1].cols, 3U * 2 * 4);  // o and seven bounds: two tiles an item
}

TEST(ColumnBlocks, PredicatesOnOtherAxesAreLeft) {
  expect_same_at_all_widths(
      [](const Sketch& s) {
        const Expr x = s.stage.read(s.reals("x"), at(0)), z = s.stage.read(s.reals("z"), at(0));
        const uint32_t one = s.bound("one", 0, 1);
        return select(less(Axis::Row, 1), select(less_than_operand(Axis::Row, one), x, z), z);
      },
      {{"one", {1}}});
}

// ---- maps with an index ----

// x[base + coef * c + stride * v], v < 5.
Body indexed(int64_t base, int64_t coef, int64_t stride) {
  return [=](const Sketch& s) {
    const BufferId x = s.reals("x");
    const uint32_t v = s.index("v", 4);
    return s.stage.read(x, map3(base, 0, coef).plus(v, stride, 5));
  };
}

TEST(ColumnBlocks, AnIndexOfAnyStride) {
  for (const int64_t v : {0, 1, 4}) {
    expect_same_at_all_widths(indexed(0, 1, 3), {{"v", {v}}});
    expect_same_at_all_widths(indexed(8, 1, -2), {{"v", {v}}});
    expect_same_at_all_widths(indexed(2, 1, 0), {{"v", {v}}});
    expect_same_at_all_widths(indexed(40, -1, 3), {{"v", {v}}});
    expect_same_at_all_widths(indexed(60, -2, -1), {{"v", {v}}});
  }
}

TEST(ColumnBlocks, AnIndexThatDoesNotFollowTheColumn) {
  for (const int64_t v : {0, 4}) expect_same_at_all_widths(indexed(3, 0, 7), {{"v", {v}}});
}

TEST(ColumnBlocks, AnIndexPerColumn) {
  std::vector<int64_t> shuffled;
  for (int64_t i = 0; i < 28; ++i) shuffled.push_back((i * 11 + 5) % 28);
  expect_same_at_all_widths(
      [](const Sketch& s) {
        const BufferId x = s.reals("x"), order = s.integers("order", 28, Precision::I16);
        const uint32_t v = s.stage.operand(order, at(0));
        return s.stage.read(x, fixed(4).plus(v, 2, 28));
      },
      {{"order", shuffled}});
}

TEST(ColumnBlocks, AnIndexOutOfRangeFaults) {
  for (const int64_t v : {-1, 5, 100}) {
    for (const int64_t stride : {3, 0, -2}) expect_both_fault(13, indexed(20, 1, stride), {{"v", {v}}});
    expect_both_fault(13, indexed(20, 0, 1), {{"v", {v}}});
    expect_both_fault(13, indexed(30, -1, 1), {{"v", {v}}});
  }
}

// ---- bounds that are data ----

TEST(ColumnBlocks, BoundsThatAreData) {
  const Body between = [](const Sketch& s) {
    const Expr x = s.stage.read(s.reals("x"), at(0)), z = s.stage.read(s.reals("z"), at(0));
    const uint32_t low = s.bound("low", -100, 100), high = s.bound("high", -100, 100);
    return select(at_least_operand(Axis::Col, low), select(less_than_operand(Axis::Col, high), x, z),
                  select(less_than_operand(Axis::Col, high), 0.5, 0.25));
  };
  for (const int64_t low : {-100, -1, 0, 1, 4, 11})
    for (const int64_t high : {-7, 0, 5, 8, 12, 100})
      for (const uint64_t n : {9, 12, 13})
        expect_same(testing::t4f(), n, between, {{"low", {low + 100}}, {"high", {high + 100}}});
}

// ---- integers ----

// Integers of 8 bits alone, and no narrower ones to fall back to.
Body bounded_by(int64_t low, int64_t high) {
  return [=](const Sketch& s) {
    const Expr x = s.stage.read(s.reals("x"), at(0));
    return select(less_than_operand(Axis::Col, s.bound("v", low, high, Precision::I8)), x, 0.0);
  };
}
Body narrow_index(int64_t stride, uint64_t modulus) {
  return [=](const Sketch& s) {
    const BufferId x = s.reals("x");
    const uint32_t v = s.index("v", modulus - 1, Precision::I8);
    return s.stage.read(x, at(20).plus(v, stride, modulus));
  };
}

void expect_refused(const Result<Program>& program, std::string_view needed) {
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.refusal().kind, RefusalKind::Missing);
  EXPECT_EQ(program.refusal().subject, "y");
  EXPECT_THAT(to_text(program.refusal()), HasSubstr(std::string(needed)));
}

TEST(ColumnBlocks, IntegersHoldEveryIntermediate) {
  const Target narrow = testing::narrow_integers();
  const Body plain = [](const Sketch& s) {
    return s.stage.read(s.build.input({.name = "x", .cols = s.n, .fill = GivenFill{}}), at(0));
  };
  // The first column itself: 31 tiles of 4 end at 124, 32 at 128.
  EXPECT_TRUE(built(narrow, 124, plain).ok());
  expect_refused(built(narrow, 128, plain), "i16");
  // A bound of 115 less a first column of 12, and one more.
  expect_same(narrow, 12, bounded_by(-115, 0), {{"v", {0}}});
  expect_same(narrow, 12, bounded_by(0, 115), {{"v", {115}}});
  expect_refused(built(narrow, 12, bounded_by(0, 116)), "i16");
  expect_refused(built(narrow, 12, bounded_by(-116, 0)), "i16");
  // 2 * (12 + 3 * 17) is 126; 18 makes it 132. Strides count by their size.
  for (const int64_t v : {0, 16}) expect_same(narrow, 12, narrow_index(3, 17), {{"v", {v}}});
  expect_refused(built(narrow, 12, narrow_index(3, 18)), "i16");
  for (const int64_t v : {0, 10}) expect_same(narrow, 12, narrow_index(-2, 11), {{"v", {v}}});
  expect_refused(built(narrow, 12, narrow_index(-3, 18)), "i16");
  // Beyond 64 bits nothing wraps either.
  expect_refused(built(testing::t4f(), 12, narrow_index(int64_t{1} << 40, uint64_t{1} << 40)), "i64");
}

// ---- sections ----

TEST(ColumnBlocks, ARowThatFitsAPageIsOneItem) {
  const Body plain = [](const Sketch& s) { return s.stage.read(s.reals("x"), at(0)); };
  const Result<Program> fits = built(testing::t4f(), 8, plain), wide = built(testing::t4f(), 9, plain);
  ASSERT_TRUE(fits.ok() && wide.ok());
  EXPECT_EQ(fits->work.items.size(), 1U);
  EXPECT_EQ(fits->tensors.size(), 2U);
  EXPECT_EQ(wide->work.items.size(), 3U);  // 3 tiles: blocks of one
}

TEST(ColumnBlocks, OneTensorIsLoadedOnce) {
  const Result<Program> program = built(testing::t4f(), 20, [](const Sketch& s) {
    return s.stage.read(s.reals("x"), at(0)) * s.stage.read(s.reals("x"), at(1));
  });
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->tensors.size(), 3U);  // x, the table, y
}

}  // namespace
}  // namespace tw::spatial::lower
