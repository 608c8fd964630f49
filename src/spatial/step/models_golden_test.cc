// Whole models on a spatial target: every section certified, and the step, run bit by bit as the target would run it,
// near its definition in double precision. A prompt in one chunk, then decode steps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/golden_files.h"
#include "model/model.h"
#include "spatial/certify/certify_step.h"
#include "spatial/step/examine.h"
#include "spatial/step/rollout.h"
#include "spatial/target_file.h"

namespace tw {
namespace {

using spatial::step::Choice;
using spatial::step::Difference;
using spatial::step::RolloutStep;
using spatial::step::Simulator;

constexpr uint32_t kContext = 64, kPrompt = 8, kSteps = 3;

// How far logits may be off, as a part of the largest.
//   bf16: a value has 8 bits and is rounded once an op, a weight once: 2^-9 each. Some 25 roundings lie one after the
//         other in two layers, which is 1 % if they are independent, and the largest of 384 logits three times that.
//         Measured: 2.8 %.
//   f32:  the same sections with values of 24 bits. What is left is the order of sums: 2^-24 * sqrt(25) * 3 is 1e-6.
struct Datapath {
  spatial::Precision element;
  double bound;
};
constexpr Datapath kBf16{spatial::Precision::Bf16, 0.04}, kF32{spatial::Precision::F32, 1e-5};

spatial::Target target_of(const Datapath& datapath) {
  Result<spatial::Target> target = spatial::find_target("tensix");
  EXPECT_TRUE(target.ok()) << to_text(target.refusal());
  target->real_element = datapath.element;
  target->matmul_operands.insert(datapath.element);
  return *target;
}

class SimulatedModel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model::golden_folder() / GetParam()))
      GTEST_SKIP() << model::golden_folder() / GetParam() << " is not there: it holds the model that is simulated";
    golden_ = model::read_golden(GetParam());
    Result<gguf::Checkpoint> checkpoint = gguf::Checkpoint::open(golden_.folder / "model.gguf");
    ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
    Result<model::Model> model = model::Model::load(*checkpoint, {kContext});
    ASSERT_TRUE(model.ok()) << to_text(model.refusal());
    model_ = std::move(*model);
  }

  // Every step of the prompt and after it.
  std::vector<RolloutStep> simulated(const Datapath& datapath) {
    Simulator simulator(target_of(datapath), model_->constants());
    const auto step_of = [&](uint32_t rows) {
      return model_->step(rows == 1 ? graph::Form{} : graph::Form{graph::Form::Kind::Chunk, rows, true});
    };
    std::vector<RolloutStep> steps;
    const Result<void> run = spatial::step::roll_out(
        simulator, step_of, {{golden_.tokens.begin(), golden_.tokens.begin() + kPrompt}, kPrompt, kSteps},
        [&](const RolloutStep& step) { steps.push_back(step); });
    EXPECT_TRUE(run.ok()) << to_text(run.refusal());
    return steps;
  }

  void expect_near(const Datapath& datapath) {
    const std::vector<RolloutStep> steps = simulated(datapath);
    ASSERT_EQ(steps.size(), 1 + kSteps);
    for (const RolloutStep& step : steps) {
      const Difference* logits = step.outcome.of("logits");
      ASSERT_NE(logits, nullptr);
      EXPECT_LE(logits->relative(), datapath.bound) << "position " << step.position;
      // Both sides of a choice may be off by the bound; closer calls than that are no error.
      for (const Choice& choice : step.outcome.choices)
        EXPECT_LE(choice.margin, 2 * datapath.bound * logits->scale)
            << "position " << step.position + choice.row << ": " << choice.got << " for " << choice.want;
      // What goes on from here is what the definition would go on with.
      EXPECT_EQ(step.outcome.choices.back().got, step.outcome.choices.back().want) << "position " << step.position;
    }
  }

  model::Golden golden_;
  std::optional<model::Model> model_;
};

class InBf16 : public SimulatedModel {};
TEST_P(InBf16, ChoosesTheTokensOfItsDefinition) { expect_near(kBf16); }

TEST_P(SimulatedModel, IsOffByTheRoundingOfItsValuesAlone) { expect_near(kF32); }

TEST_P(SimulatedModel, IsCertifiedInEveryForm) {
  for (const graph::Form& form : {graph::Form{}, graph::Form{graph::Form::Kind::Chunk, kPrompt},
                                  graph::Form{graph::Form::Kind::Chunk, 33, true}}) {
    Result<graph::StepGraph> graph = model_->step(form);
    ASSERT_TRUE(graph.ok()) << to_text(graph.refusal());
    const Result<spatial::step::Examined> step = spatial::step::examine(std::move(*graph), target_of(kBf16));
    ASSERT_TRUE(step.ok()) << to_text(form) << ": " << to_text(step.refusal());
    for (const spatial::StepFailure& failure : step->verdict.failures)
      ADD_FAILURE() << to_text(form) << ": " << to_text(step->lowered.composition, failure);
    for (const std::string& text : recheck(step->lowered.composition, step->target, step->verdict.certificate))
      ADD_FAILURE() << to_text(form) << ": " << text;
    EXPECT_EQ(step->lowered.ops.size(), step->graph.ops.size());
    for (const spatial::SectionPlacement& shares : step->placement) EXPECT_FALSE(shares.empty());
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, InBf16, ::testing::Values("llama-f32", "qwen3-f32", "qwen3-q8_0"), test_name);
INSTANTIATE_TEST_SUITE_P(Golden, SimulatedModel,
                         ::testing::Values("llama-f32", "qwen3-f32", "qwen3-q8_0", "qwen2-f16", "gemma2-f32",
                                           "gemma3-f32", "gemma4-ple-f32", "granite-f32", "lfm2-f32", "olmo2-f32"),
                         test_name);

}  // namespace
}  // namespace tw
