// What the hyperparameters of mixtures and of latent attention must agree on, beyond the range of each key.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.h"
#include "model/toy_files.h"

namespace tw::model {
namespace {

using testing::HasSubstr;

std::string answer_to(const ToyFile& file) {
  const std::vector<std::byte> bytes = file.bytes();
  auto checkpoint = gguf::Checkpoint::parse(bytes, "toy.gguf");
  if (!checkpoint) return to_text(checkpoint.refusal());
  const auto model = Model::load(*checkpoint);
  return model.ok() ? "loaded" : to_text(model.refusal());
}

std::string refusal_with(std::string_view architecture, const std::string& key, gguf::Value value) {
  ToyFile file = toy_file(architecture);
  file.set_key(fmt::format("{}.{}", architecture, key), std::move(value));
  return answer_to(file);
}

TEST(MixtureRefusal, GroupsMustDivideTheExperts) {
  EXPECT_THAT(refusal_with("deepseek2", "expert_group_count", gguf::value_u32(3)),
              HasSubstr("deepseek2.expert_group_count: is 3, which does not divide the 8 experts"));
}

TEST(MixtureRefusal, TheGroupsKeptMustHoldTheExpertsUsed) {
  EXPECT_THAT(refusal_with("deepseek2", "expert_group_used_count", gguf::value_u32(5)),
              HasSubstr("is 5 of 4 groups, which leaves 10 experts to choose 2 from"));
  ToyFile file = toy_file("deepseek2");
  file.set_key("deepseek2.expert_used_count", gguf::value_u32(3));
  file.set_key("deepseek2.expert_group_used_count", gguf::value_u32(1));
  EXPECT_THAT(answer_to(file), HasSubstr("is 1 of 4 groups, which leaves 2 experts to choose 3 from"));
}

TEST(MixtureRefusal, MoreExpertsUsedThanThereAre) {
  EXPECT_THAT(refusal_with("glm4moe", "expert_used_count", gguf::value_u32(9)), HasSubstr("is 9; expected 1 to 8"));
}

TEST(MixtureRefusal, AnUnknownScoreIsUnsupported) {
  EXPECT_THAT(refusal_with("minimax-m2", "expert_gating_func", gguf::value_u32(4)),
              HasSubstr("a router that is neither softmax nor sigmoid"));
  EXPECT_THAT(refusal_with("llama4", "expert_gating_func", gguf::value_u32(1)), HasSubstr("other than sigmoid"));
  EXPECT_THAT(refusal_with("qwen3moe", "expert_gating_func", gguf::value_u32(2)), HasSubstr("other than softmax"));
}

TEST(MixtureRefusal, ASharedExpertWiderThanSupported) {
  ToyFile file = toy_file("kimi-linear");
  file.set_key("kimi-linear.expert_shared_count", gguf::value_u32(4096));
  file.set_key("kimi-linear.expert_feed_forward_length", gguf::value_u32(1 << 28));
  EXPECT_THAT(answer_to(file), HasSubstr("makes a shared expert 1099511627776 wide"));
}

TEST(LatentRefusal, TheSharedKeyPartMustLeaveSomeOfTheHead) {
  EXPECT_THAT(refusal_with("deepseek2", "rope.dimension_count", gguf::value_u32(48)),
              HasSubstr("is 48; expected less than the 48 values of a head's key"));
}

TEST(LatentRefusal, AHeadWithoutAWidthIsNamed) {
  ToyFile file = toy_file("deepseek2");
  file.drop_key("deepseek2.value_length");
  file.drop_key("deepseek2.attention.value_length_mla");
  EXPECT_THAT(answer_to(file), HasSubstr("deepseek2.attention.value_length"));
}

TEST(LatentRefusal, YarnMustSayItsMagnitude) {
  ToyFile file = toy_file("deepseek2");
  file.set_key("deepseek2.rope.scaling.type", gguf::value_string("yarn"));
  file.set_key("deepseek2.rope.scaling.factor", gguf::value_f32(4));
  EXPECT_THAT(answer_to(file), HasSubstr("yarn_log_multiplier"));
  file.set_key("deepseek2.rope.scaling.yarn_log_multiplier", gguf::value_f32(0.1F));
  EXPECT_EQ(answer_to(file), "loaded");
}

TEST(LatentRefusal, KeysAndValuesStoredBothWaysHaveNoUse) {
  ToyFile file = toy_file("deepseek2");
  file.add_tensor("blk.0.attn_kv_b.weight", gguf::Format::F32, {32, 256});
  EXPECT_THAT(answer_to(file), HasSubstr("blk.0.attn_"));
}

TEST(ChunkedRefusal, OddHeadsCannotBeStretchedByPairs) {
  ToyFile file = toy_file("llama4");
  file.set_key("llama4.attention.key_length", gguf::value_u32(31));
  EXPECT_THAT(answer_to(file), HasSubstr("llama4.attention.key_length: is 31; expected an even number"));
}

TEST(ChunkedRefusal, AnotherWindowIsUnsupported) {
  EXPECT_THAT(refusal_with("llama4", "attention.sliding_window", gguf::value_u32(4096)), HasSubstr("other than 8192"));
}

}  // namespace
}  // namespace tw::model
