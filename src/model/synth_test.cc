#include "model/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "gguf/temporary_folder.h"
#include "model/model.h"
#include "model/registry.h"
#include "model/step_runner.h"
#include "model/synth_vocabulary.h"
#include "model/synth_weights.h"
#include "model/toy_files.h"

namespace tw::model {
namespace {

using testing::HasSubstr;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Synth, TheSeedDecidesEveryByte) {
  const SynthSpec spec{.architecture = "qwen35moe", .format = "Q4_K_M", .seed = 5};
  const TemporaryModel a(spec), b(spec), c({.architecture = "qwen35moe", .format = "Q4_K_M", .seed = 6});
  EXPECT_EQ(contents(a.path()), contents(b.path()));
  EXPECT_NE(contents(a.path()), contents(c.path()));
}

TEST(Synth, RandomBlocksHaveTheDeviationAndNoMean) {
  for (const gguf::FormatInfo& format : gguf::all_formats()) {
    if (!can_fill(format.format)) continue;
    constexpr uint64_t kValues = 1 << 17;
    std::vector<std::byte> blocks(gguf::bytes_of(format.format, kValues));
    RandomStream random(7, format.name);
    fill_blocks(format.format, 0.03F, random, blocks);
    std::vector<double> values(kValues);
    gguf::dequantize_exact(format.format, blocks.data(), values.data(), kValues);
    double sum = 0, squares = 0;
    for (const double value : values) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(std::sqrt(squares / kValues), 0.03, 0.001) << format.name;
    EXPECT_NEAR(sum / kValues, 0, 0.0008) << format.name;
  }
}

TEST(Synth, EveryFamilyLoadsInEveryFormat) {
  for (const FamilyInfo* family : families())
    for (const std::string_view format : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K",
                                          "Q6_K", "MXFP4", "Q4_K_M", "Q5_K_M", "MXFP4_MOE"}) {
      const TemporaryModel file({.architecture = std::string(family->architecture), .format = std::string(format)});
      const auto model = Model::load(file.open());
      EXPECT_TRUE(model.ok()) << format << ": " << to_text(model.refusal());
    }
}

TEST(Synth, RowsThatAreNoWholeBlocksFallBack) {
  const TemporaryModel file(
      {.architecture = "llama", .shape = "width=256,heads=4,head=64,hidden=96", .format = "Q4_K"});
  const gguf::Checkpoint checkpoint = file.open();
  EXPECT_EQ(checkpoint.find_tensor("blk.0.ffn_up.weight")->format, gguf::Format::Q4_K);
  EXPECT_EQ(checkpoint.find_tensor("blk.0.ffn_down.weight")->format, gguf::Format::Q8_0);
  EXPECT_EQ(checkpoint.find_tensor("blk.0.ffn_norm.weight")->format, gguf::Format::F32);
}

TEST(Synth, AMixtureOfFormatsFavoursTheHead) {
  const TemporaryModel file({.architecture = "qwen3", .shape = "width=256,hidden=256,head=64", .format = "Q4_K_M"});
  const gguf::Checkpoint checkpoint = file.open();
  EXPECT_EQ(checkpoint.find_tensor("output.weight")->format, gguf::Format::Q6_K);
  EXPECT_EQ(checkpoint.find_tensor("token_embd.weight")->format, gguf::Format::Q4_K);
}

TEST(Synth, SwitchesAddTheOptionalTensors) {
  const TemporaryModel file({.architecture = "llama", .shape = "biases=1,rope_divisors=1,tied=1"});
  const gguf::Checkpoint checkpoint = file.open();
  EXPECT_NE(checkpoint.find_tensor("blk.0.attn_q.bias"), nullptr);
  EXPECT_NE(checkpoint.find_tensor("rope_freqs.weight"), nullptr);
  EXPECT_EQ(checkpoint.find_tensor("output.weight"), nullptr);
  EXPECT_TRUE(Model::load(checkpoint).ok());
}

TEST(Synth, LogitsHaveADeviationOfAboutTwo) {
  for (const FamilyInfo* family : families()) {
    const TemporaryModel file({.architecture = std::string(family->architecture)});
    auto model = Model::load(file.open());
    ASSERT_TRUE(model.ok());
    std::vector<int32_t> tokens(8);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(1 + 45 * i);
    auto rows = StepRunner(*model).run(tokens, 512);
    ASSERT_TRUE(rows.ok());
    double squares = 0;
    for (const auto& row : *rows)
      for (const double logit : row) squares += logit * logit;
    EXPECT_NEAR(std::sqrt(squares / (8 * 384)), 2, 0.3) << family->architecture;
  }
}

TEST(Synth, ABadShapeOrFormatIsRefusedByName) {
  const auto refusal = [](const SynthSpec& spec) {
    const auto result = synthesize(spec, std::filesystem::temp_directory_path() / "never-written.gguf");
    EXPECT_FALSE(result.ok());
    return result.ok() ? std::string() : to_text(result.refusal());
  };
  EXPECT_THAT(refusal({.architecture = "gpt9"}), HasSubstr("gpt9"));
  EXPECT_THAT(refusal({.architecture = "llama", .shape = "wdth=3"}), HasSubstr("width"));
  EXPECT_THAT(refusal({.architecture = "llama", .shape = "width=x"}), HasSubstr("\"x\""));
  EXPECT_THAT(refusal({.architecture = "llama", .shape = "qwen3-0.6b"}), HasSubstr("tinyllama"));
  EXPECT_THAT(refusal({.architecture = "llama", .format = "IQ1_S"}), HasSubstr("Q4_K_M"));
  EXPECT_THAT(refusal({.architecture = "llama", .shape = "vocabulary=100"}), HasSubstr("259"));
  EXPECT_THAT(refusal({.architecture = "llama", .shape = "kv_heads=3"}), HasSubstr("head_count_kv"));
}

TEST(Synth, AnInterruptionLeavesNoFile) {
  const gguf::TemporaryFolder folder;
  const std::atomic<bool> interrupted = true;
  const auto written = synthesize({.architecture = "qwen3"}, folder.path() / "out.gguf", &interrupted);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.refusal().kind, RefusalKind::Interrupted);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Synth, NamedShapesBelongToKnownFamilies) {
  EXPECT_GE(named_shapes().size(), 12U);
  for (const NamedShape& shape : named_shapes()) EXPECT_NE(find_family(shape.architecture), nullptr) << shape.name;
}

TEST(SynthVocabulary, TokensAreDistinctAndMergesMakeThem) {
  const auto metadata = vocabulary_metadata("qwen2", 151936);
  ASSERT_TRUE(metadata.ok());
  const auto strings = [&](size_t index) {
    return std::get<std::vector<std::string>>(std::get<gguf::Array>((*metadata)[index].second.data).items);
  };
  const std::vector<std::string> tokens = strings(2), merges = strings(4);
  EXPECT_EQ(tokens.size(), 151936U);
  EXPECT_EQ(merges.size(), 151936U - 259);
  std::set<std::string> known(tokens.begin(), tokens.begin() + 256);
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t gap = merges[i].find(' ');
    const std::string left = merges[i].substr(0, gap), right = merges[i].substr(gap + 1);
    ASSERT_TRUE(known.contains(left) && known.contains(right)) << merges[i];
    ASSERT_EQ(tokens[256 + i], left + right);
    ASSERT_TRUE(known.insert(left + right).second) << left + right;
  }
}

}  // namespace
}  // namespace tw::model
