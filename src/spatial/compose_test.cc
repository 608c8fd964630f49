#include "spatial/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/place.h"
#include "spatial/testing.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

using ::testing::HasSubstr;

struct Use {
  std::string name;
  TensorRole role = TensorRole::Input;
  Init init = ExternalInit{};
  uint64_t rows = 1;
  uint64_t cols = 4;
};

// A section of these tensors alone: composition looks at nothing else of it.
Program section(std::string name, const std::vector<Use>& uses) {
  Program p;
  p.name = std::move(name);
  p.target = testing::toy_square().name;
  p.tile = testing::toy_square().tile;
  for (const Use& use : uses) p.tensors.push_back({use.name, use.role, use.rows, use.cols, Precision::Bf16, use.init});
  return p;
}

constexpr TensorRole kIn = TensorRole::Input, kOut = TensorRole::Output, kState = TensorRole::State,
                     kParam = TensorRole::Param;

Composition composed(std::vector<Program> sections, std::vector<std::string> outputs = {}) {
  Result<Composition> step = compose(std::move(sections), {"step", std::move(outputs)});
  EXPECT_TRUE(step.ok()) << to_text(step.refusal());
  return step.ok() ? std::move(*step) : Composition{};
}

std::string roles(const Composition& step) {
  std::string text;
  for (const Storage& s : step.storages)
    text += s.name + "/" + std::to_string(s.version) + " " + std::string(name(s.role)) + "\n";
  return text;
}

TEST(Compose, UnifiesByNameAndDecidesRoles) {
  const Composition step = composed({section("up", {{"x", kIn, GivenInit{}}, {"w", kIn, GivenInit{}}, {"h", kOut}}),
                                     section("down", {{"h", kIn}, {"w", kParam, GivenInit{}}, {"y", kOut}}),
                                     section("cache", {{"y", kIn}, {"k", kState, ZeroInit{}}})});
  EXPECT_EQ(roles(step), "x/0 input\nw/0 param\nh/0 activation\ny/0 activation\nk/0 state\n");
  EXPECT_EQ(step.sections[0].storages[2], step.sections[1].storages[0]);
  EXPECT_TRUE(step.carried.empty());  // in place: the storage is its own successor
}

TEST(Compose, WhatNobodyReadsOrIsAskedForIsAnOutput) {
  const std::vector<Program> sections{section("one", {{"x", kIn, GivenInit{}}, {"h", kOut}}),
                                      section("two", {{"h", kIn}, {"y", kOut}})};
  EXPECT_EQ(roles(composed(sections)), "x/0 input\nh/0 activation\ny/0 output\n");
  EXPECT_EQ(roles(composed(sections, {"h"})), "x/0 input\nh/0 output\ny/0 output\n");
  const Result<Composition> wrong = compose(sections, {"step", {"z"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(to_text(wrong.refusal()), "z: is an output of step that no section produces");
}

TEST(Compose, ASectionThatRewritesATensorReadsTheVersionBefore) {
  const Composition step =
      composed({section("shift", {{"ring", kIn, ZeroInit{}}, {"x", kIn, GivenInit{}}, {"ring", kOut}}),
                section("taps", {{"ring", kIn}, {"y", kOut}})});
  EXPECT_EQ(roles(step), "ring/0 state\nx/0 input\nring/1 state\ny/0 output\n");
  EXPECT_NE(step.sections[0].storages[0], step.sections[0].storages[2]);
  EXPECT_EQ(step.sections[1].storages[0], step.sections[0].storages[2]);
  EXPECT_EQ(step.carried, (std::vector<CarriedStorage>{{StorageId{0}, StorageId{2}}}));
  EXPECT_EQ(step.last("ring"), StorageId{2});
}

TEST(Compose, TheFirstRealFillWins) {
  const Composition step =
      composed({section("a", {{"t", kIn}, {"y", kOut}}), section("b", {{"t", kIn, RealInit{1}}, {"z", kOut}})});
  EXPECT_EQ(step.storages[0].init, Init{RealInit{1}});
}

TEST(Compose, RefusesWhatDoesNotAgree) {
  const auto refusal = [](std::vector<Program> sections) {
    const Result<Composition> step = compose(std::move(sections), {"step", {}});
    EXPECT_FALSE(step.ok());
    return step.ok() ? std::string() : to_text(step.refusal());
  };
  const Program a = section("a", {{"x", kIn, GivenInit{}}, {"y", kOut}});
  EXPECT_THAT(refusal({a, section("b", {{"x", kIn, GivenInit{}, 2, 2}, {"z", kOut}})}),
              HasSubstr("x: is 1x4 bf16 in section a and 2x2 bf16 in section b"));
  Program other = section("b", {{"x", kIn, GivenInit{}}, {"z", kOut}});
  other.tensors[0].dtype = Precision::F32;
  EXPECT_THAT(refusal({a, other}), HasSubstr("x: is 1x4 bf16 in section a and 1x4 f32 in section b"));
  EXPECT_THAT(refusal({a, section("b", {{"x", kIn, RealInit{2}}, {"z", kOut}})}),
              HasSubstr("one fill in section a and another in section b"));
  EXPECT_THAT(refusal({section("a", {{"x", kIn}, {"y", kOut}})}),
              HasSubstr("no section before it produces it and nobody fills it"));
  // Produced, but only later.
  EXPECT_THAT(refusal({section("a", {{"x", kIn}, {"y", kOut}}), section("b", {{"y", kIn}, {"x", kOut}})}),
              HasSubstr("x: is read by section a"));
  other = a;
  other.target = "another";
  EXPECT_THAT(refusal({a, other}), HasSubstr("was lowered for target another"));
  EXPECT_THAT(refusal({}), HasSubstr("has no sections"));
}

// ---- layouts ----

Result<std::vector<Program>> named_relayout(const RelayoutRequest& r) {
  const Use flat{r.to_dense ? r.from : r.to, r.to_dense ? kIn : kOut, r.to_dense ? r.init : Init{ExternalInit{}}, 1,
                 r.rows * r.cols};
  const Use dense{r.to_dense ? r.to : r.from, r.to_dense ? kOut : kIn, r.to_dense ? Init{ExternalInit{}} : r.init,
                  r.rows, r.cols};
  return std::vector{section("relayout " + r.from + " to " + r.to, {flat, dense})};
}

std::string names(const std::vector<Program>& sections) {
  std::string text;
  for (const Program& p : sections) {
    text += p.name + ":";
    for (const Tensor& t : p.tensors) text += " " + t.name;
    text += "\n";
  }
  return text;
}

TEST(Layouts, OneRelayoutServesEveryReader) {
  const Use dense{"x", kIn, ExternalInit{}, 2, 8};
  Result<std::vector<Program>> agreed =
      agree_layouts({section("make", {{"s", kIn, GivenInit{}}, {"x", kOut, ExternalInit{}, 1, 16}}),
                     section("flat", {{"x", kIn, ExternalInit{}, 1, 16}, {"a", kOut}}),
                     section("first", {dense, {"b", kOut}}), section("second", {dense, {"c", kOut}})},
                    named_relayout);
  ASSERT_TRUE(agreed.ok()) << to_text(agreed.refusal());
  EXPECT_EQ(names(*agreed),
            "make: s x\nflat: x a\nrelayout x to x__dense: x x__dense\nfirst: x__dense b\nsecond: x__dense c\n");
  EXPECT_TRUE(compose(*agreed, {"step", {}}).ok());
}

TEST(Layouts, ARewrittenTensorIsLaidOutAgain) {
  const Use flat{"x", kIn, GivenInit{}, 1, 16}, dense{"x", kState, GivenInit{}, 2, 8};
  Result<std::vector<Program>> agreed = agree_layouts({section("write", {dense}), section("a", {flat, {"a", kOut}}),
                                                       section("again", {dense}), section("b", {flat, {"b", kOut}})},
                                                      named_relayout);
  ASSERT_TRUE(agreed.ok()) << to_text(agreed.refusal());
  EXPECT_EQ(names(*agreed),
            "write: x\nrelayout x to x__rows: x__rows x\na: x__rows a\nagain: x\n"
            "relayout x to x__rows2: x__rows2 x\nb: x__rows2 b\n");
}

TEST(Layouts, AWriteInAnotherLayoutIsRefused) {
  const Use dense{"x", kState, GivenInit{}, 2, 8};
  const Result<std::vector<Program>> agreed = agree_layouts(
      {section("write", {dense}), section("rewrite", {{"x", kState, GivenInit{}, 1, 16}})}, named_relayout);
  ASSERT_FALSE(agreed.ok());
  EXPECT_THAT(to_text(agreed.refusal()),
              HasSubstr("x: is 2x8 in section write and written as 1x16 in section rewrite"));
  const Result<std::vector<Program>> shapes = agree_layouts(
      {section("write", {dense}), section("read", {{"x", kIn, GivenInit{}, 4, 4}, {"y", kOut}})}, named_relayout);
  EXPECT_FALSE(shapes.ok());
}

// ---- placement ----

TEST(Place, SharesItemsEvenlyInOrder) {
  const Target& toy = testing::toy_square();  // nine sites
  Program product = *testing::streamed_product(toy, 5, 4, 2);
  const SectionPlacement shares = *place(product, toy);
  ASSERT_EQ(shares.size(), 9U);
  uint64_t next = 0;
  for (const SiteShare& share : shares) {
    EXPECT_EQ(share.first, next);
    EXPECT_TRUE(share.count == 2 || share.count == 3);
    next += share.count;
  }
  EXPECT_EQ(next, 20U);
  EXPECT_EQ(shares[4].site_row, 1U);
  EXPECT_EQ(shares[4].site_col, 1U);
  EXPECT_EQ(placed_stages(product, shares), 9 * product.stages.size());
  EXPECT_EQ(place(*testing::flat_add(toy, 4), toy)->size(), 1U);
}

TEST(Place, RefusesASectionThatDoesNotFitASite) {
  Target small = testing::toy_square();
  small.local_bytes = 100;
  const Result<SectionPlacement> shares = place(*testing::flat_add(testing::toy_square(), 7), small);
  ASSERT_FALSE(shares.ok());
  EXPECT_THAT(to_text(shares.refusal()),
              HasSubstr("section add_7 needs 384 bytes of local memory, a site of target toy_square has 100"));
}

}  // namespace
}  // namespace tw::spatial
