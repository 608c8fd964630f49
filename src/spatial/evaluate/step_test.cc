#include "spatial/evaluate/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_good.h"
#include "spatial/builder.h"
#include "spatial/evaluate/composed.h"
#include "spatial/testing.h"

namespace tw::spatial::evaluate {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const Target kToy = spatial::testing::toy_target({4, 4}, 8);

// to = from * factor over six tiles, an item each; in place when both are one name.
Program scaled(const std::string& from, const std::string& to, double factor, Init init = ExternalInit{}) {
  Builder b(kToy, Precision::F32);
  const bool in_place = from == to;
  const TensorId x =
      b.tensor(from, in_place ? TensorRole::State : TensorRole::Input, 1, 24, Precision::F32, std::move(init));
  const TensorId y = in_place ? x : b.tensor(to, TensorRole::Output, 1, 24, Precision::F32);
  const BufferId in = b.buffer("in", 1, Precision::F32), out = b.buffer("out", 1, Precision::F32);
  b.load("load", x, {.steps = {item_x(1)}}, in);
  GenericStage scale = b.compute("scale", flat(4));
  const Expr value = scale.read(in, at(0));
  scale.write(out, value * Expr(factor));
  b.store("store", out, y, {.steps = {item_x(1)}});
  return good(std::move(b).finish({.name = from + "_to_" + to, .items = row_items(6, 1), .claim = approx("f32")}));
}

// Doubles the memory, then y is what it was doubled to, plus nothing.
std::vector<Program> carried_step() {
  return {scaled("memory", "memory", 2, RealInit{1.0}), scaled("memory", "y", 3), scaled("y", "z", 5)};
}

TEST(Step, RunsSectionsInOrderAndCarriesState) {
  const std::vector<Program> sections = carried_step();
  Result<Step> step = Step::compile(sections);
  ASSERT_TRUE(step.ok());
  Memory memory(kToy.tile);
  for (const double want : {30.0, 60.0, 120.0}) {
    ASSERT_FALSE(good(step->run(memory)).fault);
    EXPECT_THAT(*memory.reals("z"), Each(want));
  }
}

TEST(Step, AnotherOrderOrASectionLessIsAFault) {
  const std::vector<Program> sections = carried_step();
  Result<Step> step = Step::compile(sections);
  ASSERT_TRUE(step.ok());
  const auto fault_of = [&](std::vector<uint32_t> order) {
    Memory memory(kToy.tile);
    const StepRun run = good(step->run(memory, {.order = std::move(order)}));
    return run.fault ? to_text(*run.fault) : "none";
  };
  EXPECT_EQ(fault_of({0, 1, 2}), "none");
  EXPECT_EQ(fault_of({1, 0, 2}), "section memory_to_y: memory has been written 0 times, expected 1");
  EXPECT_EQ(fault_of({2, 1, 0}), "section y_to_z: y has been written 0 times, expected 1");
  EXPECT_EQ(fault_of({0, 2}), "section y_to_z: y has been written 0 times, expected 1");
}

TEST(Step, ANewVersionIsReadOnlyAfterItsSection) {
  Builder b(kToy, Precision::F32);
  const TensorId old = b.tensor("ring", TensorRole::Input, 1, 8, Precision::F32, RealInit{1.0});
  const TensorId next = b.tensor("ring", TensorRole::Output, 1, 8, Precision::F32);
  const BufferId in = b.buffer("in", 2, Precision::F32), out = b.buffer("out", 1, Precision::F32);
  b.load("load", old, {}, in);  // every item reads all of the version before
  GenericStage shift = b.compute("shift", {cols(4), reduce_k(8)});
  const Expr value = shift.read(in, map3(0, 0, 0, 1));
  shift.write(out, value);
  b.store("store", out, next, {.steps = {item_x(1)}});
  const Program ring = good(std::move(b).finish({.name = "ring", .items = row_items(2, 1), .claim = exact()}));
  for (const ItemOrder order : {ItemOrder::Listed, ItemOrder::Reversed}) {
    Memory memory(kToy.tile);
    const auto run = evaluate(ring, memory, {.order = order});
    ASSERT_TRUE(run.ok() && !run->fault);
    EXPECT_THAT(*memory.reals("ring"), Each(8.0));
  }
}

TEST(Step, AnEarlyCountIsLookedAtBeforeTheFirstSection) {
  const std::vector<Program> sections{scaled("memory", "memory", 2, RealInit{1.0}),
                                      good(spatial::testing::row_sum_fold(kToy, 3, true))};
  Result<Step> step = Step::compile(sections);
  ASSERT_TRUE(step.ok());
  Memory memory(kToy.tile);
  ASSERT_TRUE(memory.set(sections[1].tensors[0], std::vector<double>(12, 1.0)).ok());
  ASSERT_TRUE(memory.set(sections[1].tensors[2], std::vector<int64_t>{99}).ok());
  const StepRun run = good(step->run(memory));
  ASSERT_TRUE(run.fault.has_value());
  EXPECT_EQ(run.fault->kind, FaultKind::TripRange);
  EXPECT_EQ(run.section, 1U);
  EXPECT_TRUE(run.runs.empty());
}

TEST(Composed, RunsOnAnyPlacement) {
  const Result<Composition> composition = compose(carried_step(), {"step", {}});
  ASSERT_TRUE(composition.ok()) << to_text(composition.refusal());
  Target one_site = kToy;
  one_site.site_rows = one_site.site_cols = 1;
  std::vector<std::vector<double>> results;
  for (const Target& target : {kToy, one_site}) {
    const Result<Placement> placement = place(*composition, target);
    ASSERT_TRUE(placement.ok());
    Memory memory(kToy.tile);
    ASSERT_FALSE(good(evaluate(*composition, *placement, memory)).fault);
    results.push_back(*memory.reals("z"));
  }
  EXPECT_THAT(results[0], Each(30.0));
  EXPECT_EQ(results[0], results[1]);
}

TEST(Composed, ItemsComeInTurnsOfTheSites) {
  const Placement placement{{{0, 0, 0, 3}, {0, 1, 3, 2}}};
  EXPECT_THAT(items_by_site(placement), ElementsAre(ElementsAre(0, 3, 1, 4, 2)));
}

}  // namespace
}  // namespace tw::spatial::evaluate
