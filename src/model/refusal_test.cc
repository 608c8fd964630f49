// What a file must hold: each key and tensor of each family is taken away, changed or added in turn, and the refusal
// must be of the right kind and name it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.h"
#include "model/registry.h"
#include "model/toy_files.h"

namespace tw::model {
namespace {

using testing::HasSubstr;

class Refusals : public testing::TestWithParam<const FamilyInfo*> {
 protected:
  const FamilyInfo& family() const { return *GetParam(); }
  std::string full(std::string_view key) const { return fmt::format("{}.{}", family().architecture, key); }

  // Whether a row of the family's tables leaves the tensor to the file.
  bool is_optional(std::string_view name) const {
    for (const TensorTable table : family().tensors)
      for (const TensorSpec& spec : table)
        for (uint32_t layer = 0; spec.need == Need::Optional && layer < 8; ++layer)
          if (tensor_name(spec.pattern, layer) == name) return true;
    return false;
  }

  static Result<Facts> load(const ToyFile& file) {
    const std::vector<std::byte> bytes = file.bytes();
    auto checkpoint = gguf::Checkpoint::parse(bytes, "toy.gguf");
    if (!checkpoint) return checkpoint.refusal();
    auto model = Model::load(*checkpoint);
    if (!model) return model.refusal();
    return model->facts();
  }

  static void expect_refusal(const ToyFile& file, RefusalKind kind, std::string_view name) {
    const auto facts = load(file);
    ASSERT_FALSE(facts.ok()) << name;
    EXPECT_EQ(facts.refusal().kind, kind) << to_text(facts.refusal());
    EXPECT_THAT(to_text(facts.refusal()), HasSubstr("toy.gguf"));
    EXPECT_THAT(to_text(facts.refusal()), HasSubstr(std::string(name)));
  }
};

TEST_P(Refusals, TheUnchangedFileLoads) {
  const auto facts = load(toy_file(family().architecture));
  ASSERT_TRUE(facts.ok()) << to_text(facts.refusal());
  EXPECT_EQ(facts->architecture, family().architecture);
  EXPECT_EQ(facts->width, 64U);
  EXPECT_EQ(facts->vocabulary, 384U);
}

TEST_P(Refusals, AMissingRequiredKeyIsNamed) {
  const ToyFile whole = toy_file(family().architecture);
  for (const KeySpec& spec : merged_keys(family().keys)) {
    if (spec.need != Need::Required) continue;
    ToyFile file = whole;
    file.drop_key(full(spec.key));
    expect_refusal(file, RefusalKind::Missing, full(spec.key));
  }
}

TEST_P(Refusals, AKeyOfAnotherTypeIsNamed) {
  const ToyFile whole = toy_file(family().architecture);
  for (const KeySpec& spec : merged_keys(family().keys)) {
    ToyFile file = whole;
    file.set_key(full(spec.key), spec.type == KeyType::Text ? gguf::value_u32(3) : gguf::value_string("three"));
    expect_refusal(file, RefusalKind::Malformed, full(spec.key));
  }
}

TEST_P(Refusals, ANumberOutOfRangeIsNamed) {
  const ToyFile whole = toy_file(family().architecture);
  for (const KeySpec& spec : merged_keys(family().keys)) {
    if (spec.type == KeyType::Text || spec.type == KeyType::Counts || spec.type == KeyType::Flags) continue;
    if (spec.type == KeyType::Flag && spec.low == 0 && spec.high >= 1) continue;
    if (spec.low <= 0 && spec.high >= 4294967295.0) continue;
    ToyFile file = whole;
    const double wrong = spec.low > 0 ? 0 : spec.high + 1;
    if (spec.type == KeyType::Flag)
      file.set_key(full(spec.key), gguf::value_bool(wrong != 0));
    else if (spec.type == KeyType::Real)
      file.set_key(full(spec.key), gguf::value_f32(static_cast<float>(spec.low > 0 ? 0 : spec.high * 2 + 1)));
    else
      file.set_key(full(spec.key), gguf::value_u32(static_cast<uint32_t>(wrong)));
    expect_refusal(file, spec.feature.empty() ? RefusalKind::Malformed : RefusalKind::Unsupported, full(spec.key));
  }
}

TEST_P(Refusals, AMissingTensorIsNamed) {
  const ToyFile whole = toy_file(family().architecture);
  for (size_t i = 0; i < whole.spec.tensors.size(); ++i) {
    const std::string name = whole.spec.tensors[i].name;
    if (is_optional(name)) continue;
    ToyFile file = whole;
    file.drop_tensor(i);
    expect_refusal(file, RefusalKind::Missing, name);
  }
}

TEST_P(Refusals, ATensorOfAnotherShapeIsNamedWithBothShapes) {
  const ToyFile whole = toy_file(family().architecture);
  for (size_t i = 0; i < whole.spec.tensors.size(); ++i) {
    ToyFile file = whole;
    gguf::TensorSpec& tensor = file.spec.tensors[i];
    const std::string name = tensor.name;
    std::vector<uint64_t> shape = tensor.shape;
    ++shape.back();
    file.drop_tensor(i);
    file.add_tensor(name, gguf::Format::F32, shape);
    expect_refusal(file, RefusalKind::Malformed, name);
    expect_refusal(file, RefusalKind::Malformed, fmt::format("{}", shape.back()));
  }
}

TEST_P(Refusals, ATensorOfIntegersIsNamed) {
  ToyFile file = toy_file(family().architecture);
  file.drop_tensor(0);
  file.add_tensor("token_embd.weight", gguf::Format::I32, {64, 384});
  expect_refusal(file, RefusalKind::Unsupported, "token_embd.weight");
}

TEST_P(Refusals, TensorsWithoutAUseAreNamed) {
  const ToyFile whole = toy_file(family().architecture);
  for (const std::string_view name :
       {"blk.0.attn_norm.scale", "blk.0.attn_output.input_scale", "blk.0.attn_rot_embd.weight", "pos_embd.weight"}) {
    ToyFile file = whole;
    file.add_tensor(std::string(name), gguf::Format::F32, {4});
    expect_refusal(file, RefusalKind::Unsupported, name);
  }
  ToyFile file = whole;
  file.add_tensor("blk.9.attn_norm.weight", gguf::Format::F32, {64});
  expect_refusal(file, RefusalKind::Malformed, "blk.9.attn_norm.weight");
}

TEST_P(Refusals, AnUnknownRotationScalingIsNamed) {
  ToyFile file = toy_file(family().architecture);
  file.set_key(full("rope.scaling.type"), gguf::value_string("longrope"));
  expect_refusal(file, RefusalKind::Unsupported, "longrope");
}

TEST_P(Refusals, HeadsThatDoNotDivideAreNamed) {
  ToyFile file = toy_file(family().architecture);
  file.set_key(full("attention.head_count_kv"), gguf::value_u32(3));
  expect_refusal(file, RefusalKind::Malformed, full("attention.head_count_kv"));
}

TEST_P(Refusals, APerLayerArrayMustHaveOneItemABlock) {
  ToyFile file = toy_file(family().architecture);
  file.set_key(full("attention.head_count"), gguf::value_i32s({4}));
  expect_refusal(file, RefusalKind::Malformed, full("attention.head_count"));
}

INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::ValuesIn(families().begin(), families().end()),
                         [](const auto& family) { return test_name(family.param->architecture); });

TEST(Refusal, AnUnknownArchitectureNamesTheKnownOnes) {
  ToyFile file = toy_file("qwen3");
  file.set_key("general.architecture", gguf::value_string("mamba9"));
  const std::vector<std::byte> bytes = file.bytes();
  auto checkpoint = gguf::Checkpoint::parse(bytes, "toy.gguf");
  ASSERT_TRUE(checkpoint.ok());
  const auto model = Model::load(*checkpoint);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(to_text(model.refusal()),
              HasSubstr("the architecture \"mamba9\" is not known. The known ones are llama, "));
  for (const FamilyInfo* family : families())
    EXPECT_THAT(to_text(model.refusal()), HasSubstr(std::string(family->architecture)));
}

TEST(Refusal, TheLegacyLayoutOfQwen3NextIsNamed) {
  ToyFile file = toy_file("qwen3next");
  file.add_tensor("blk.0.ssm_in.weight", gguf::Format::F32, {64, 384});
  const std::vector<std::byte> bytes = file.bytes();
  auto checkpoint = gguf::Checkpoint::parse(bytes, "toy.gguf");
  ASSERT_TRUE(checkpoint.ok());
  const auto model = Model::load(*checkpoint);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(to_text(model.refusal()), HasSubstr("blk.0.ssm_in.weight"));
}

Refusal refusal_of(const ToyFile& file) {
  const std::vector<std::byte> bytes = file.bytes();
  auto checkpoint = gguf::Checkpoint::parse(bytes, "toy.gguf");
  EXPECT_TRUE(checkpoint.ok());
  const auto model = Model::load(*checkpoint);
  EXPECT_FALSE(model.ok());
  return model.ok() ? Refusal{} : model.refusal();
}

TEST(Refusal, LayersCannotAllReadTheCachesOfEarlierOnes) {
  ToyFile file = toy_file("gemma4");
  file.set_key("gemma4.attention.shared_kv_layers", gguf::value_u32(4));
  EXPECT_EQ(to_text(refusal_of(file)),
            "toy.gguf: key gemma4.attention.shared_kv_layers: is 4, and there are 4 layers in all");
  file.set_key("gemma4.attention.shared_kv_layers", gguf::value_u32(3));
  EXPECT_THAT(to_text(refusal_of(file)), HasSubstr("layer 1 reads the caches of an earlier layer"));
}

TEST(Refusal, ValuesAsWideAsKeysAreNeededWhereKeysMayBeValues) {
  ToyFile file = toy_file("gemma4");
  file.set_key("gemma4.attention.value_length_swa", gguf::value_u32(8));
  const Refusal refusal = refusal_of(file);
  EXPECT_EQ(refusal.kind, RefusalKind::Unsupported);
  EXPECT_THAT(to_text(refusal), HasSubstr("gemma4.attention.value_length_swa"));
}

TEST(Refusal, AChannelHiddenFromARouterIsNamed) {
  ToyFile file = toy_file("gemma4", "experts=8,used=2,expert_hidden=32");
  for (size_t i = 0; i < file.spec.tensors.size(); ++i)
    if (file.spec.tensors[i].name == "blk.2.pre_ffw_norm_2.weight")
      std::fill_n(file.data[i].begin() + 5 * sizeof(float), sizeof(float), std::byte{0});
  const Refusal refusal = refusal_of(file);
  EXPECT_EQ(refusal.kind, RefusalKind::Unsupported);
  EXPECT_THAT(to_text(refusal), HasSubstr("blk.2.pre_ffw_norm_2.weight: value 5 is 0"));
}

TEST(Refusal, AFusedTensorBesideItsPartsIsAConflict) {
  ToyFile file = toy_file("qwen3");
  file.add_tensor("blk.1.attn_qkv.weight", gguf::Format::F32, {64, 256});
  const std::vector<std::byte> bytes = file.bytes();
  auto checkpoint = gguf::Checkpoint::parse(bytes, "toy.gguf");
  ASSERT_TRUE(checkpoint.ok());
  const auto model = Model::load(*checkpoint);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.refusal().kind, RefusalKind::Conflict);
  EXPECT_THAT(to_text(model.refusal()), HasSubstr("blk.1.attn_qkv.weight"));
}

}  // namespace
}  // namespace tw::model
