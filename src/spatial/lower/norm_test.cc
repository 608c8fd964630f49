#include "spatial/lower/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "spatial/compose.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/testing.h"

namespace tw::spatial::lower {
namespace {

using testing::expect_equal;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::OpCase;
using testing::Outcome;
using testing::reals;

enum Operands : uint32_t { kPlain = 0, kWeight = 1, kResidual = 2, kBias = 4, kAllParts = 7 };

OpCase norm(graph::NormKind kind, uint64_t rows, uint64_t cols, uint32_t width, uint32_t operands) {
  const uint64_t unit = width == 0 ? cols : width, seed = rows * 31 + cols + operands;
  OpCase c{graph::RowNorm{kind, 1e-5F, width}, {reals("x", rows, cols, seed, -2, 3)}};
  c.operands.resize(4);
  if (operands & kWeight) c.operands[1] = reals("w", 1, unit, seed + 1);
  if (operands & kResidual) c.operands[2] = reals("r", rows, cols, seed + 2);
  if (operands & kBias) c.operands[3] = reals("b", 1, unit, seed + 3);
  return c;
}
OpCase rms(uint64_t rows, uint64_t cols, uint32_t width = 0, uint32_t operands = kWeight) {
  return norm(graph::NormKind::Rms, rows, cols, width, operands);
}
OpCase l2(uint64_t rows, uint64_t cols, uint32_t width) {
  return {graph::L2Norm{1e-6F, width}, {reals("x", rows, cols, rows + cols)}};
}

constexpr graph::NormKind kNormKinds[] = {graph::NormKind::Rms, graph::NormKind::Layer};

struct NormForm {
  uint64_t rows, cols;
  uint32_t width;
  std::string_view form;
};

TEST(Norm, EveryFormOnSmallTiles) {
  for (const NormForm& want : {NormForm{1, 8, 0, "flat"},
                               {1, 8, 4, "flat"},
                               {1, 7, 0, "flat"},
                               {1, 6, 2, "flat"},
                               {1, 8, 1, "flat"},  // more units than a tile has rows
                               {1, 12, 4, "heads"},
                               {1, 16, 8, "heads"},
                               {1, 12, 0, "streamed"},
                               {1, 13, 0, "streamed"},
                               {1, 24, 12, "streamed"},
                               {3, 8, 0, "rows"},
                               {9, 7, 0, "rows"},
                               {5, 16, 4, "rows"},
                               {6, 12, 0, "streamed rows"},
                               {5, 11, 0, "streamed rows"},
                               {3, 24, 12, "streamed rows"},
                               {2, 4, 2, "flat"},
                               {3, 12, 2, "narrow units"},
                               {1, 18, 6, "narrow units"},
                               {5, 22, 11, "narrow units"}}) {
    for (const graph::NormKind kind : kNormKinds)
      for (const uint32_t operands : {kPlain, kWeight, kResidual, kBias, kAllParts}) {
        SCOPED_TRACE(::testing::Message()
                     << want.rows << 'x' << want.cols << " by " << want.width << ", operands " << operands);
        EXPECT_EQ(expect_lowers(norm(kind, want.rows, want.cols, want.width, operands), testing::t4()).form, want.form);
      }
    SCOPED_TRACE(::testing::Message() << "l2norm " << want.rows << 'x' << want.cols << " by " << want.width);
    EXPECT_EQ(expect_lowers(l2(want.rows, want.cols, want.width), testing::t4()).form, want.form);
    expect_lowers(rms(want.rows, want.cols, want.width, kAllParts), testing::t1());
    expect_lowers(norm(graph::NormKind::Layer, want.rows, want.cols, want.width, kAllParts), testing::tall());
    expect_lowers(rms(want.rows, want.cols, want.width, kAllParts), testing::t4f(), {64});
  }
}

TEST(Norm, ShapesOfTheMainTarget) {
  const Target target = testing::t32();
  EXPECT_EQ(expect_lowers(rms(1, 60, 20), target).form, "flat");
  EXPECT_EQ(expect_lowers(rms(1, 160, 4), target).form, "flat");
  EXPECT_EQ(expect_lowers(rms(1, 320, 64), target).form, "heads");
  EXPECT_EQ(expect_lowers(rms(1, 288, 0, kAllParts), target).form, "streamed");
  EXPECT_EQ(expect_lowers(rms(3, 288, 0, kAllParts), target).form, "streamed rows");
  EXPECT_EQ(expect_lowers(rms(33, 128, 64), target).form, "rows");
  EXPECT_EQ(expect_lowers(rms(3, 512, 16), target).form, "narrow units");
  EXPECT_EQ(expect_lowers(l2(1, 320, 64), target).form, "heads");
}

// One order of arithmetic, whatever the form.
TEST(Norm, FormsAgreeInBits) {
  for (const Target& target : {testing::t4f(), testing::t4()})
    for (const graph::NormKind kind : kNormKinds)
      for (const uint32_t operands : {kPlain, kWeight, kAllParts}) {
        const OpCase c = norm(kind, 2, 4, 0, operands);
        const OpView view = testing::view_of(c, target);
        const Result<Norm> n = norm_of(std::get<graph::RowNorm>(c.spec), view);
        ASSERT_TRUE(n.ok());
        const Result<Program> flat = norm_flat(*n, view), heads = norm_heads(*n, view), rows = norm_rows(*n, view);
        ASSERT_TRUE(flat.ok() && heads.ok() && rows.ok());
        const Outcome want = testing::run({*flat}, c, target);
        EXPECT_EQ(testing::run({*heads}, c, target).values, want.values);
        EXPECT_EQ(testing::run({*rows}, c, target).values, want.values);
        for (const bool dense : {false, true}) {
          const Result<std::vector<Program>> streamed = norm_streamed(*n, view, dense);
          ASSERT_TRUE(streamed.ok());
          EXPECT_EQ(testing::run(*streamed, c, target).values, want.values);
        }
      }
}

// Squares, sums and scales of a streamed norm are never rounded to the element.
TEST(Norm, StreamedScalesAreTheAccumulators) {
  const OpCase c = rms(1, 12);
  const Lowered lowered = expect_lowers(c, testing::t4(), {1});
  ASSERT_EQ(lowered.sections.size(), 2);
  EXPECT_EQ(lowered.sections[0].at(*lowered.sections[0].result()).dtype, Precision::F32);
  // x is declared with its fill wherever it is read.
  for (const Program& section : lowered.sections)
    for (const Tensor& tensor : section.tensors)
      EXPECT_TRUE(tensor.name != "x" || std::holds_alternative<GivenInit>(tensor.init));
}

TEST(Norm, OneTensorMayBeXAndTheResidual) {
  for (const auto& [rows, cols] : {std::pair<uint64_t, uint64_t>{1, 7}, {3, 8}, {1, 12}, {3, 12}}) {
    OpCase c = rms(rows, cols, 0, kResidual);
    c.operands[2] = c.operands[0];
    expect_lowers(c, testing::t4());
  }
}

TEST(Norm, ARowOfZerosAndALargeOne) {
  for (const uint64_t cols : {7, 12}) {
    OpCase c = rms(3, cols);
    std::fill_n(c.operands[0]->values.begin(), cols, 0.0);
    std::fill_n(c.operands[0]->values.begin() + static_cast<std::ptrdiff_t>(cols), cols, 1e15);
    expect_lowers(c, testing::t4());
  }
}

TEST(Norm, ShapesOfModelsLower) {
  for (const std::string_view name : {"tensix", "rdu", "scalar"}) {
    const Target target = spatial::testing::shipped_target(name);
    for (const uint64_t rows : {1, 7, 64})
      for (const auto& [cols, width] : {std::pair<uint64_t, uint32_t>{64, 0},
                                        {96, 0},
                                        {1024, 0},
                                        {4096, 0},
                                        {5120, 0},
                                        {256, 16},
                                        {512, 32},
                                        {1024, 64},
                                        {2048, 128},
                                        {6144, 256}}) {
        OpView view{
            target, {OpTensor{.name = "x", .rows = rows, .cols = cols}}, {.name = "y", .rows = rows, .cols = cols}};
        view.operands.push_back(OpTensor{.name = "w", .cols = width == 0 ? cols : width});
        const Result<Lowered> lowered = lower(graph::RowNorm{graph::NormKind::Rms, 1e-6F, width}, view);
        ASSERT_TRUE(lowered.ok()) << to_text(lowered.refusal());
        for (const Program& section : lowered->sections) EXPECT_TRUE(fits(section, target));
      }
  }
}

// A section that is left out, or comes after its reader, leaves a tensor that nobody fills.
TEST(Norm, SectionsAreAllNeededAndInOrder) {
  const Target target = testing::t4();
  const ComposeOptions step{.name = "step", .outputs = {"y"}};
  const OpCase cases[] = {rms(3, 12),
                          norm(graph::NormKind::Layer, 1, 13, 0, kAllParts),
                          rms(3, 12, 2, kResidual),
                          {graph::Softmax{}, {reals("x", 3, 11, 1)}}};
  for (const OpCase& c : cases) {
    const Result<Lowered> lowered = lower_op(c.spec, testing::view_of(c, target));
    ASSERT_TRUE(lowered.ok());
    ASSERT_TRUE(compose(lowered->sections, step).ok());
    for (size_t i = 0; i + 1 < lowered->sections.size(); ++i) {
      std::vector<Program> fewer = lowered->sections, late = fewer;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(compose(fewer, step).ok()) << "without " << lowered->sections[i].name;
      std::rotate(late.begin() + static_cast<std::ptrdiff_t>(i), late.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  late.end());
      EXPECT_FALSE(compose(late, step).ok()) << "with a late " << lowered->sections[i].name;
    }
  }
}

TEST(Norm, NarrowUnitsAreMovedAsTheyAreStored) {
  const Target target = testing::t4();
  for (const OpCase& c : {l2(4, 45, 5), rms(9, 39, 13, kWeight | kResidual)}) {
    OpView view = testing::view_of(c, target);
    view.result.dtype = Precision::F32;
    const Result<Lowered> lowered = lower_op(c.spec, view);
    ASSERT_TRUE(lowered.ok()) << to_text(lowered.refusal());
    EXPECT_EQ(lowered->form, "narrow units");
    expect_equal(Result<std::vector<Program>>(lowered->sections), c, target, {1 << 18});
  }
}

TEST(Norm, ASiteThatDoesNotHoldItRefusesIt) {
  const Refusal refusal = expect_refused(norm(graph::NormKind::Layer, 1, 4, 4, kResidual), testing::t4_with(1024));
  EXPECT_EQ(refusal.kind, RefusalKind::TooLarge);
  EXPECT_EQ(refusal.subject, "y");
}

TEST(Norm, RefusalsAreByName) {
  const Refusal fabric = expect_refused(rms(1, 8), spatial::testing::shipped_target("fabric"));
  EXPECT_EQ(fabric.kind, RefusalKind::Missing);
  EXPECT_THAT(fabric.reason, HasSubstr("rsqrt"));
  EXPECT_EQ(expect_refused(rms(1, 8), testing::without_reals()).kind, RefusalKind::Missing);
  OpCase odd = rms(1, 8);
  std::get<graph::RowNorm>(odd.spec).eps = 1.5e-10F;
  EXPECT_THAT(expect_refused(odd, testing::t4()).reason, HasSubstr("epsilon"));
  const Refusal memory = expect_refused(rms(1, 24, 12), testing::t4_with(100));
  EXPECT_EQ(memory.kind, RefusalKind::TooLarge);
  EXPECT_EQ(memory.subject, "y");
  // Units of 3 on tiles of 2 x 8: neither whole tiles nor runs that end at one.
  const Refusal narrow = expect_refused(rms(3, 12, 3), spatial::testing::toy_target({2, 8}, 2));
  EXPECT_EQ(narrow.kind, RefusalKind::Unsupported);
  EXPECT_THAT(narrow.reason, HasSubstr("6 elements"));
}

}  // namespace
}  // namespace tw::spatial::lower
