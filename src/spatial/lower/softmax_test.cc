#include "spatial/lower/softmax.h"

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
using testing::OpCase;
using testing::reals;

enum class Sinks : uint8_t { None, One, Each };

OpCase softmax(uint64_t rows, uint64_t cols, Sinks sinks, std::optional<Precision> dtype = {}) {
  OpCase c{graph::Softmax{}, {reals("x", rows, cols, rows * 7 + cols, -4, 4)}};
  if (sinks != Sinks::None) c.operands.push_back(reals("s", sinks == Sinks::One ? 1 : rows, 1, cols, -3, 6));
  for (auto& operand : c.operands) operand->tensor.dtype = dtype;
  return c;
}

struct SoftmaxForm {
  uint64_t rows, cols;
  std::string_view form;
};

TEST(Softmax, EveryFormWithAndWithoutSinks) {
  for (const SoftmaxForm& want : {SoftmaxForm{1, 1, "flat"},
                                  {1, 7, "flat"},
                                  {1, 8, "flat"},
                                  {2, 4, "rows"},
                                  {9, 7, "rows"},
                                  {1, 9, "streamed"},
                                  {1, 16, "streamed"},
                                  {1, 21, "streamed"},
                                  {5, 16, "streamed rows"},
                                  {9, 11, "streamed rows"}})
    for (const Sinks sinks : {Sinks::None, Sinks::One, Sinks::Each}) {
      SCOPED_TRACE(::testing::Message() << want.rows << 'x' << want.cols << " sinks " << static_cast<int>(sinks));
      const OpCase c = softmax(want.rows, want.cols, sinks);
      EXPECT_EQ(expect_lowers(c, testing::t4()).form, want.form);
      expect_lowers(c, testing::t4f(), {64});
      expect_lowers(c, testing::tall());
      expect_lowers(c, testing::t1());
    }
  for (const auto& [rows, cols] : {std::pair<uint64_t, uint64_t>{3, 5}, {1, 256}, {1, 257}, {40, 300}, {33, 64}})
    expect_lowers(softmax(rows, cols, Sinks::One), testing::t32());
}

// More rows than a tile has are folded one by one.
TEST(Softmax, FlatRowsAtThePrecisionThatIsAskedFor) {
  for (const auto& [target, rows, cols] : {std::tuple{testing::t4(), 2, 4},
                                           {testing::t4(), 8, 1},
                                           {testing::t4(), 3, 2},
                                           {testing::t32(), 40, 4},
                                           {testing::t32(), 3, 80},
                                           {testing::t1(), 5, 7}})
    for (const Precision precision : {Precision::Bf16, Precision::F32})
      for (const Sinks sinks : {Sinks::None, Sinks::One, Sinks::Each}) {
        const OpCase c = softmax(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), sinks, precision);
        const Result<Program> section = softmax_section(testing::view_of(c, target), precision);
        expect_equal(section, c, target, {precision == Precision::F32 ? 64.0 : 2.0});
        ASSERT_TRUE(section.ok());
        EXPECT_EQ(section->at(*section->result()).dtype, precision);
      }
}

TEST(Softmax, FormsAgreeInBits) {
  const Target target = testing::t4f();
  for (const Sinks sinks : {Sinks::None, Sinks::One}) {
    const OpCase c = softmax(1, 7, sinks);
    const OpView view = testing::view_of(c, target);
    const Result<Program> flat = softmax_section(view, Precision::F32), rows = softmax_rows(view, Precision::F32);
    ASSERT_TRUE(flat.ok() && rows.ok());
    const std::vector<double> want = testing::run({*flat}, c, target).values;
    EXPECT_EQ(testing::run({*rows}, c, target).values, want);
    for (const bool dense : {false, true}) {
      const Result<std::vector<Program>> streamed = softmax_streamed(view, Precision::F32, dense);
      ASSERT_TRUE(streamed.ok()) << to_text(streamed.refusal());
      EXPECT_EQ(testing::run(*streamed, c, target).values, want);
    }
  }
}

TEST(Softmax, MaskedColumnsWeighNothingAndANaNStaysInItsRow) {
  for (const uint64_t cols : {7, 12}) {
    OpCase c = softmax(3, cols, Sinks::None);
    c.operands[0]->values[2] = c.operands[0]->values[cols] = -std::numeric_limits<double>::infinity();
    c.operands[0]->values[2 * cols + 1] = std::nan("");
    expect_lowers(c, testing::t4());
  }
}

TEST(Softmax, RefusalsAreByName) {
  EXPECT_EQ(expect_refused(softmax(1, 4, Sinks::None), testing::without_reals()).kind, RefusalKind::Missing);
  const Target target = testing::t4();
  const OpCase c = softmax(3, 4, Sinks::None);
  const Result<Program> wide = softmax_section(testing::view_of(c, target), Precision::Bf16);
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.refusal().kind, RefusalKind::TooLarge);
  EXPECT_EQ(wide.refusal().subject, "y");
  const Refusal memory = expect_refused(softmax(1, 12, Sinks::None), testing::t4_with(100));
  EXPECT_EQ(memory.kind, RefusalKind::TooLarge);
  EXPECT_EQ(memory.subject, "y");
}

}  // namespace
}  // namespace tw::spatial::lower
