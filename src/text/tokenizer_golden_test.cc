// Against an independent implementation: real vocabularies where the folder of goldens is at hand, the small models of
// tests/golden, and the shipped model.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gguf/checkpoint.h"
#include "text/tokenizer.h"

namespace tw::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path golden_root() {
  const char* given = std::getenv("TW_GOLDEN_DIR");
  return given != nullptr && *given != '\0' ? fs::path(given) : fs::path("../shared/golden");
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Tokenizer load(const fs::path& path) {
  auto checkpoint = gguf::Checkpoint::open(path);
  EXPECT_TRUE(checkpoint.ok()) << (checkpoint ? "" : to_text(checkpoint.refusal()));
  auto tokenizer = Tokenizer::load(*checkpoint);
  EXPECT_TRUE(tokenizer.ok()) << path << ": " << (tokenizer ? "" : to_text(tokenizer.refusal()));
  return std::move(tokenizer).value();
}

std::vector<std::string> split_texts(const std::string& text) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    out.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

std::vector<Token> parse_ids(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<Token>(in), {}};
}

class Conformance : public testing::TestWithParam<const char*> {};

TEST_P(Conformance, EveryLineOfTheRealVocabularyIsEqual) {
  const fs::path base = golden_root() / "tokenizer" / (std::string("ggml-vocab-") + GetParam() + ".gguf");
  if (!fs::exists(base))
    GTEST_SKIP() << base
                 << " is not there; set TW_GOLDEN_DIR to the folder of goldens to compare with real vocabularies.";
  const Tokenizer tokenizer = load(base);
  const std::vector<std::string> texts = split_texts(read_file(base.string() + ".inp"));
  std::istringstream expected(read_file(base.string() + ".out"));
  ASSERT_GT(texts.size(), 40u);
  size_t compared = 0;
  for (std::string line; std::getline(expected, line); ++compared) {
    ASSERT_LT(compared, texts.size());
    EXPECT_EQ(tokenizer.encode(texts[compared], {.add_special = false, .parse_special = false}), parse_ids(line))
        << "text " << compared << ": " << texts[compared];
  }
  EXPECT_EQ(compared, texts.size());
}

TEST_P(Conformance, EveryTextComesBack) {
  const fs::path base = golden_root() / "tokenizer" / (std::string("ggml-vocab-") + GetParam() + ".gguf");
  if (!fs::exists(base))
    GTEST_SKIP() << base
                 << " is not there; set TW_GOLDEN_DIR to the folder of goldens to compare with real vocabularies.";
  const Tokenizer tokenizer = load(base);
  for (const std::string& text : split_texts(read_file(base.string() + ".inp")))
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Conformance, testing::Values("gpt-2", "llama-spm", "llama-bpe", "qwen2"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

size_t compare_models(const fs::path& root) {
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!fs::exists(entry.path() / "golden.json")) continue;
    const json golden = json::parse(read_file(entry.path() / "golden.json"));
    const Tokenizer tokenizer = load(entry.path() / "model.gguf");
    for (const json& test : golden.at("tokenize")) {
      const std::string text = test.at("text");
      const auto plain = tokenizer.encode(text, {.add_special = false});
      EXPECT_EQ(plain, test.at("ids").get<std::vector<Token>>()) << entry.path() << ": " << text;
      EXPECT_EQ(tokenizer.encode(text), test.at("ids_with_special").get<std::vector<Token>>())
          << entry.path() << ": " << text;
      EXPECT_EQ(tokenizer.decode(plain), text) << entry.path();
      ++compared;
    }
  }
  return compared;
}

TEST(GoldenModels, TextsOfTheRepositoryHaveTheIdsOfTheReference) { EXPECT_GT(compare_models("tests/golden"), 0u); }

TEST(GoldenModels, TextsOfAllGoldensHaveTheIdsOfTheReference) {
  const fs::path root = golden_root();
  if (!fs::exists(root))
    GTEST_SKIP() << root << " is not there; set TW_GOLDEN_DIR to the folder of goldens to compare with all of them.";
  EXPECT_GT(compare_models(root), 0u);
}

TEST(ShippedModel, PromptsHaveTheTokensOfTheReference) {
  const json golden = json::parse(read_file("models/fable-3m.golden.json"));
  for (const auto& [file, cases] : golden.at("files").items()) {
    const Tokenizer tokenizer = load(fs::path("models") / file);
    for (const json& test : cases) {
      const std::string prompt = test.at("prompt");
      const auto tokens = tokenizer.encode(prompt);
      EXPECT_EQ(tokens, test.at("prompt_tokens").get<std::vector<Token>>()) << prompt;
      EXPECT_EQ(tokenizer.decode(tokens), prompt);
    }
  }
}

}  // namespace
}  // namespace tw::text
