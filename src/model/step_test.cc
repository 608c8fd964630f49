// The step graphs of every family and form: what they hold, and that the verifier finds nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "graph/evaluate.h"
#include "graph/verify.h"
#include "model/model.h"
#include "model/registry.h"
#include "model/step_runner.h"
#include "model/toy_files.h"

namespace tw::model {
namespace {

using graph::Form;
using Census = std::map<std::string, int>;

constexpr Form kForms[] = {{Form::Kind::Decode, 1},      {Form::Kind::Chunk, 1},         {Form::Kind::Chunk, 7},
                           {Form::Kind::Chunk, 7, true}, {Form::Kind::Chunk, 512, true}, {Form::Kind::Batch, 2},
                           {Form::Kind::Batch, 5}};

Model load_toy(std::string_view architecture, std::string shape = {}) {
  const TemporaryModel file({.architecture = std::string(architecture), .shape = std::move(shape), .format = "Q8_0"});
  auto model = Model::load(file.open());
  EXPECT_TRUE(model.ok()) << to_text(model.refusal());
  return std::move(*model);
}

graph::StepGraph step_of(const Model& model, const Form& form) {
  auto step = model.step(form);
  EXPECT_TRUE(step.ok()) << to_text(step.refusal());
  return std::move(*step);
}

Census census(const graph::StepGraph& step) {
  Census out;
  for (const graph::Op& op : step.ops) ++out[std::string(graph::op_name(op.spec))];
  return out;
}

class Steps : public testing::TestWithParam<const FamilyInfo*> {
 protected:
  Steps() : model_(load_toy(GetParam()->architecture)) {}
  Model model_;
};

TEST_P(Steps, TheVerifierFindsNothing) {
  for (const Form& form : kForms) {
    const graph::StepGraph step = step_of(model_, form);
    for (const graph::Finding& finding : graph::verify(step))
      ADD_FAILURE() << graph::to_text(form) << ": " << graph::to_text(step, finding);
  }
}

TEST_P(Steps, EveryConstantIsPlacedAndUsed) {
  const graph::StepGraph step = step_of(model_, {});
  std::set<std::string> declared;
  for (const graph::Tensor& tensor : step.tensors)
    if (tensor.role == graph::Role::Constant) declared.insert(tensor.name);
  std::set<std::string> placed;
  for (const auto& [name, constant] : model_.constants()) placed.insert(name);
  EXPECT_EQ(declared, placed);
}

TEST_P(Steps, StatesHaveOneNameAndShapeInEveryForm) {
  const auto states = [&](const Form& form, std::optional<uint32_t> sequence) {
    std::map<std::string, std::pair<uint32_t, uint32_t>> out;
    for (const graph::Tensor& tensor : step_of(model_, form).tensors)
      if (tensor.role == graph::Role::State && tensor.sequence == sequence)
        out[std::string(graph::shared_name(tensor))] = {tensor.rows, tensor.cols};
    return out;
  };
  const auto decode = states({}, std::nullopt);
  EXPECT_FALSE(decode.empty());
  EXPECT_EQ(states({Form::Kind::Chunk, 7}, std::nullopt), decode);
  for (const uint32_t b : {0U, 1U, 2U}) EXPECT_EQ(states({Form::Kind::Batch, 3}, b), decode);
}

TEST_P(Steps, TheIoOfABatchIsNamedBySequence) {
  const graph::StepGraph step = step_of(model_, {Form::Kind::Batch, 3});
  ASSERT_EQ(step.io.sequences.size(), 3U);
  EXPECT_EQ(step.at(step.io.tokens).rows, 3U);
  for (uint32_t b = 0; b < 3; ++b) {
    const graph::SequenceIo& io = step.io.sequences[b];
    EXPECT_EQ(step.at(io.position).name, fmt::format("position_s{}", b));
    EXPECT_EQ(step.at(io.logits).name, fmt::format("logits_s{}", b));
    EXPECT_EQ(step.at(io.next).name, fmt::format("next_s{}", b));
    EXPECT_EQ(step.at(io.logits).sequence, b);
    EXPECT_EQ(step.at(io.logits).rows, 1U);
  }
}

TEST_P(Steps, AChunkGivesTheLogitsAskedFor) {
  const graph::StepGraph last = step_of(model_, {Form::Kind::Chunk, 7});
  EXPECT_EQ(last.at(last.io.sequences[0].logits).rows, 1U);
  const graph::StepGraph all = step_of(model_, {Form::Kind::Chunk, 7, true});
  EXPECT_EQ(all.at(all.io.sequences[0].logits).rows, 7U);
  EXPECT_EQ(all.at(all.io.sequences[0].next).rows, 7U);
}

TEST_P(Steps, FormsOutOfRangeAreRefused) {
  for (const Form& form : {Form{Form::Kind::Decode, 2}, Form{Form::Kind::Chunk, 0}, Form{Form::Kind::Chunk, 513},
                           Form{Form::Kind::Batch, 1}, Form{Form::Kind::Batch, 65}})
    EXPECT_FALSE(model_.step(form).ok()) << graph::to_text(form);
}

TEST_P(Steps, FormsAgreeInExactArithmetic) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 11; ++i) tokens.push_back(1 + (i * 37) % 384);
  auto whole = StepRunner(model_).run(tokens, 512);
  auto single = StepRunner(model_).run(tokens, 1);
  auto batch = StepRunner(model_).run_batch({tokens, {tokens.rbegin(), tokens.rend()}});
  ASSERT_TRUE(whole.ok() && single.ok() && batch.ok());
  EXPECT_LE(largest_difference(*whole, *single), 1e-12);
  EXPECT_LE(largest_difference((*batch)[0], *single), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, Steps, testing::ValuesIn(families().begin(), families().end()),
                         [](const auto& family) { return test_name(family.param->architecture); });

TEST(StepCensus, ADenseDecodeStep) {
  EXPECT_EQ(census(step_of(load_toy("qwen3"), {})), (Census{{"rows_gather", 1},
                                                            {"row_norm", 9},
                                                            {"matmul", 15},
                                                            {"rope", 4},
                                                            {"set_rows", 4},
                                                            {"attention", 2},
                                                            {"elementwise", 6},
                                                            {"activate", 2},
                                                            {"argmax", 1}}));
}

TEST(StepCensus, ABiasIsOneMoreOp) {
  EXPECT_EQ(census(step_of(load_toy("qwen2"), {}))["row_broadcast"], 6);
  EXPECT_EQ(census(step_of(load_toy("qwen2", "biases=0"), {}))["row_broadcast"], 0);
}

TEST(StepCensus, AHybridDecodeStep) {
  EXPECT_EQ(census(step_of(load_toy("qwen35moe"), {})), (Census{{"rows_gather", 1},
                                                                {"row_norm", 11},
                                                                {"matmul", 42},
                                                                {"rope", 2},
                                                                {"set_rows", 2},
                                                                {"attention", 1},
                                                                {"head_slice", 2},
                                                                {"elementwise", 17},
                                                                {"row_broadcast", 4},
                                                                {"activate", 21},
                                                                {"argmax", 1},
                                                                {"causal_conv", 9},
                                                                {"l2_norm", 6},
                                                                {"decay", 3},
                                                                {"gated_delta", 3},
                                                                {"moe", 4}}));
}

TEST(StepCensus, ABatchRepeatsOnlyWhatEachSequenceHas) {
  const Model model = load_toy("qwen3");
  const Census one = census(step_of(model, {})), three = census(step_of(model, {Form::Kind::Batch, 3}));
  EXPECT_EQ(three.at("matmul"), one.at("matmul"));
  EXPECT_EQ(three.at("attention"), 3 * one.at("attention"));
  EXPECT_EQ(three.at("rope"), 3 * one.at("rope"));
  EXPECT_EQ(three.at("set_rows"), 3 * (one.at("set_rows") + 2));
  EXPECT_EQ(three.at("row_gather"), 3 * (2 * 3 + 1));
}

// Moves the bytes of q, k and v, which lie row after row, into one tensor.
ToyFile fused(ToyFile file, std::string_view kind, const std::vector<uint64_t>& shape) {
  for (uint32_t layer = 0; layer < 2; ++layer) {
    std::vector<std::byte> all;
    for (const std::string_view part : {"q", "k", "v"}) {
      const std::string name = fmt::format("blk.{}.attn_{}.{}", layer, part, kind);
      const auto found = std::ranges::find(file.spec.tensors, name, &gguf::TensorSpec::name);
      const auto index = static_cast<size_t>(found - file.spec.tensors.begin());
      all.insert(all.end(), file.data[index].begin(), file.data[index].end());
      file.drop_tensor(index);
    }
    file.add_tensor(fmt::format("blk.{}.attn_qkv.{}", layer, kind), gguf::Format::F32, shape);
    file.data.back() = std::move(all);
  }
  return file;
}

Rows logits_of(const ToyFile& file) {
  const std::vector<std::byte> bytes = file.bytes();
  auto checkpoint = gguf::Checkpoint::parse(bytes, "toy.gguf");
  EXPECT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
  auto model = Model::load(*checkpoint);
  EXPECT_TRUE(model.ok()) << to_text(model.refusal());
  auto rows = StepRunner(*model).run(std::vector<int32_t>{5, 200, 77, 31}, 512);
  EXPECT_TRUE(rows.ok()) << to_text(rows.refusal());
  return std::move(*rows);
}

// llama permutes rows for its rotation, so this also shows that the order starts at each part's own rows.
TEST(Model, FusedProjectionsEqualTheirParts) {
  const ToyFile parts = toy_file("llama", "biases=1");
  EXPECT_EQ(logits_of(fused(fused(parts, "weight", {64, 128}), "bias", {128})), logits_of(parts));
}

TEST(Model, AnArrayOfEqualCountsEqualsOneCount) {
  const ToyFile one = toy_file("llama");
  ToyFile array = one;
  array.set_key("llama.attention.head_count", gguf::value_i32s({4, 4}));
  array.set_key("llama.feed_forward_length", gguf::value_i32s({128, 128}));
  EXPECT_EQ(logits_of(array), logits_of(one));
}

TEST(Model, BlocksOfNextTokenPredictionAreLeftOut) {
  ToyFile file = toy_file("qwen3");
  const Rows plain = logits_of(file);
  file.set_key("qwen3.block_count", gguf::value_u32(3));
  file.set_key("qwen3.nextn_predict_layers", gguf::value_u32(1));
  file.add_tensor("blk.2.nextn.eh_proj.weight", gguf::Format::F32, {128, 64});
  EXPECT_EQ(logits_of(file), plain);
}

TEST(Model, AContextIsTheSmallerOfTheModelsAndTheDefault) {
  EXPECT_EQ(load_toy("llama").facts().context, 2048U);
  EXPECT_EQ(load_toy("llama", "context=9000").facts().context, 4096U);
}

// Shapes of families beside their toy shapes.
TEST(Variants, VerifyAndUseWhatIsPlaced) {
  constexpr std::pair<std::string_view, std::string_view> kVariants[] = {
      {"llama", "experts=4,used=2"},
      {"granitemoe", "shared_hidden=0"},
      {"olmo2", "window=0"},
      {"gemma3", "window=0"},
      {"gemma3", "logit_cap=20"},
      {"lfm2moe", "leading_dense=0,select_bias=0"},
      {"gemma4", "layer_input=0,output_scales=0"},
      {"gemma4", "shared_caches=0"},
      {"gemma4", "experts=8,used=2,expert_hidden=32,own_values=0,shared_caches=0,layer_input=0"},
  };
  for (const auto& [architecture, shape] : kVariants) {
    SCOPED_TRACE(fmt::format("{} {}", architecture, shape));
    const Model model = load_toy(architecture, std::string(shape));
    for (const Form& form : {Form{}, Form{Form::Kind::Chunk, 7, true}, Form{Form::Kind::Batch, 2}}) {
      const graph::StepGraph step = step_of(model, form);
      for (const graph::Finding& finding : graph::verify(step)) ADD_FAILURE() << graph::to_text(step, finding);
      size_t declared = 0;
      for (const graph::Tensor& tensor : step.tensors) declared += tensor.role == graph::Role::Constant ? 1 : 0;
      EXPECT_EQ(declared, model.constants().size());
    }
  }
}

TEST(Variants, ALayerThatReadsTheCachesOfAnotherHasNone) {
  const graph::StepGraph step = step_of(load_toy("gemma4"), {});
  std::set<std::string> states;
  for (const graph::Tensor& tensor : step.tensors)
    if (tensor.role == graph::Role::State) states.insert(tensor.name);
  EXPECT_THAT(states, testing::ElementsAre("blk.0.k_cache", "blk.0.v_cache", "blk.1.k_cache", "blk.1.v_cache"));
}

}  // namespace
}  // namespace tw::model
