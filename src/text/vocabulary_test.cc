#include "text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "text/sample_vocabularies.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace tw::text {
namespace {

using testing::HasSubstr;

struct Hostile {
  const char* name;
  std::function<void(Vocabulary&)> damage;
  const char* subject;
  const char* reason;
};

TEST(Vocabulary, DamageIsRefusedByKeyFoundAndExpected) {
  const Hostile cases[] = {
      {"unknown model", [](Vocabulary& v) { v.model = "rwkv"; }, "tokenizer.ggml.model",
       "is \"rwkv\", the known tokenizers are llama, gpt2, gemma4, bert, t5"},
      {"unknown pre", [](Vocabulary& v) { v.pre = "mystery"; }, "tokenizer.ggml.pre", "is \"mystery\""},
      {"no tokens", [](Vocabulary& v) { v.tokens.clear(); }, "tokenizer.ggml.tokens", "0 tokens"},
      {"short scores", [](Vocabulary& v) { v.scores.pop_back(); }, "tokenizer.ggml.scores",
       "has 265 entries, tokenizer.ggml.tokens has 266 tokens"},
      {"long types", [](Vocabulary& v) { v.types.push_back(TokenType::Normal); }, "tokenizer.ggml.token_type",
       "has 267 entries"},
      {"bad score", [](Vocabulary& v) { v.scores[3] = std::nanf(""); }, "tokenizer.ggml.scores", "entry 3"},
      {"bos out of range", [](Vocabulary& v) { v.bos = 266; }, "tokenizer.ggml.bos_token_id",
       "names token 266, the vocabulary has 266 tokens"},
      {"eot out of range", [](Vocabulary& v) { v.eot = std::numeric_limits<uint64_t>::max(); },
       "tokenizer.ggml.eot_token_id", "names token 18446744073709551615"},
      {"duplicate", [](Vocabulary& v) { v.tokens[7] = v.tokens[5]; }, "tokenizer.ggml.tokens", "tokens 5 and 7"},
      {"no merges", [](Vocabulary& v) { v.merges.clear(); }, "tokenizer.ggml.merges", "0 merges"},
      {"merge without a space", [](Vocabulary& v) { v.merges[1] = "ab"; }, "tokenizer.ggml.merges",
       "entry 1 is \"ab\""},
      {"merge of nothing", [](Vocabulary& v) { v.merges[1] = "a "; }, "tokenizer.ggml.merges", "entry 1"},
      {"merge of no token", [](Vocabulary& v) { v.merges[1] = "a z"; }, "tokenizer.ggml.merges", "\"az\" is no token"},
      {"bos wanted, none named", [](Vocabulary& v) { v.add_bos = true; }, "tokenizer.ggml.add_bos_token",
       "there is no tokenizer.ggml.bos_token_id"},
  };
  for (const Hostile& hostile : cases) {
    Vocabulary v = sample::byte_level(sample::english_merges());
    hostile.damage(v);
    const auto tokenizer = Tokenizer::make(std::move(v));
    ASSERT_FALSE(tokenizer.ok()) << hostile.name;
    EXPECT_EQ(tokenizer.refusal().subject, hostile.subject) << hostile.name;
    EXPECT_THAT(tokenizer.refusal().reason, HasSubstr(hostile.reason)) << hostile.name;
  }
}

TEST(Vocabulary, KindsThatNeedScoresOrAnUnknownTokenSaySo) {
  Vocabulary spm = sample::sentence_piece(sample::english_pieces());
  spm.scores.clear();
  EXPECT_EQ(Tokenizer::make(spm).refusal().subject, "tokenizer.ggml.scores");
  Vocabulary bert = sample::word_piece({"a"});
  bert.unknown.reset();
  EXPECT_EQ(Tokenizer::make(bert).refusal().subject, "tokenizer.ggml.unknown_token_id");
}

TEST(Vocabulary, AMissingPreTokenizerIsSaidAloud) {
  const auto t = Tokenizer::make(sample::byte_level(sample::english_merges(), ""));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->pre(), "default");
  EXPECT_THAT(t->notes(), testing::Contains(HasSubstr("no pre-tokenizer")));
}

TEST(Vocabulary, EmptyTokenTextsAreNoText) {
  Vocabulary v = sample::byte_level(sample::english_merges());
  const Token empty = sample::add(v, "", 0, TokenType::UserDefined);
  sample::add(v, "", 0, TokenType::Control);
  const auto t = Tokenizer::make(std::move(v));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->decode(t->encode("hello")), "hello");
  EXPECT_EQ(t->piece(empty), "");
}

TEST(Vocabulary, HexTokens) {
  EXPECT_EQ(byte_of_hex_token("<0x0A>"), 10);
  EXPECT_EQ(byte_of_hex_token("<0xfF>"), 255);
  EXPECT_EQ(byte_of_hex_token("<0xG0>"), std::nullopt);
  EXPECT_EQ(byte_of_hex_token("<0x0A"), std::nullopt);
  EXPECT_EQ(hex_token(171), "<0xAB>");
}

TEST(Utf8, OnlyStrictFormsAreCharacters) {
  EXPECT_EQ(valid_utf8("a\xC3\xA9\xE6\x9D\xB1\xF0\x9F\x99\x82"), "a\xC3\xA9\xE6\x9D\xB1\xF0\x9F\x99\x82");
  for (const std::string bad : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xF8", "\xE0\x9F\xBF"})
    EXPECT_FALSE(decode_utf8(bad, 0).valid);
  EXPECT_EQ(valid_utf8("\xE2\x82z"), "\xEF\xBF\xBDz");
  EXPECT_EQ(incomplete_tail("a\xF0\x9F\x99"), 3u);
  EXPECT_EQ(incomplete_tail("a\xF0\x9F\x99\x82"), 0u);
  EXPECT_EQ(incomplete_tail("\x80\x80"), 0u);
}

}  // namespace
}  // namespace tw::text
