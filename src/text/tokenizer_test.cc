#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "gguf/writer.h"
#include "text/sample_vocabularies.h"

namespace tw::text {
namespace {

using sample::marked;
using testing::ElementsAre;
using testing::HasSubstr;

Tokenizer make(Vocabulary v) {
  auto tokenizer = Tokenizer::make(std::move(v));
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer ? "" : to_text(tokenizer.refusal()));
  return std::move(tokenizer).value();
}

// The texts of the tokens of `text`, special ones too.
std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  std::vector<std::string> out;
  for (const Token token : tokenizer.encode(text, options)) out.push_back(tokenizer.piece(token, true));
  return out;
}

std::string random_text(std::mt19937& random) {
  const std::vector<std::string> parts = {"hello", " ", "<tag>", "<|im_end|>", "\n", "é", "東", "\xF0\x9F\x99\x82",
                                          "\xFF",  "a1"};
  std::string out;
  for (int i = 0; i < 30; ++i)
    out += random() % 2 == 0 ? parts[random() % parts.size()] : std::string(1, static_cast<char>(random() % 256));
  return out;
}

TEST(BytePairTokenizer, MergesByRank) {
  const Tokenizer t = make(sample::byte_level(sample::english_merges()));
  EXPECT_THAT(pieces(t, "hello hello he"), ElementsAre("hello", " hello", " ", "he"));
  EXPECT_THAT(pieces(t, "aaaaa"), ElementsAre("aa", "aa", "a"));
}

TEST(BytePairTokenizer, IgnoresMergesOnlyWhereThePreTokenizerAsks) {
  Vocabulary v = sample::byte_level({{"a", "b"}, {"b", "c"}});
  sample::add(v, "abc", 0);
  EXPECT_THAT(pieces(make(v), "abc"), ElementsAre("ab", "c"));
  v.pre = "llama-bpe";
  EXPECT_THAT(pieces(make(v), "abc"), ElementsAre("abc"));
}

TEST(BytePairTokenizer, AnyBytesComeBack) {
  const Tokenizer t = make(sample::byte_level(sample::english_merges()));
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random);
    EXPECT_EQ(t.decode(t.encode(text, {.parse_special = false})), text) << "round " << round;
    EXPECT_EQ(t.decode(t.encode(text), true), text) << "round " << round;
  }
}

TEST(BytePairTokenizer, RawUtf8SpellsUnknownCharactersInBytes) {
  Vocabulary v =
      sample::sentence_piece({{marked("_"), 0}, {"a", 0}, {"b", 0}, {marked("_a"), 0}, {"\n", 0}, {"\n\n", 0}});
  v.model = "gemma4";
  v.merges = {marked("_ a")};
  const Tokenizer t = make(v);
  EXPECT_THAT(pieces(t, " ab\n\nç", {.add_special = false}), ElementsAre(" a", "b", "\n\n", "\xC3", "\xA7"));
  EXPECT_EQ(t.decode(t.encode(" ab\n\nç")), " ab\n\nç");
  EXPECT_EQ(t.pre(), "gemma4");
  EXPECT_TRUE(t.adds_bos());
}

TEST(SentencePieceTokenizer, MergesTheBestScoreFirst) {
  const Tokenizer t = make(sample::sentence_piece(sample::english_pieces()));
  // "bc" has a better score than "ab", so it is merged first.
  EXPECT_THAT(pieces(t, "abc", {.add_special = false}), ElementsAre(" a", "bc"));
  EXPECT_THAT(pieces(t, "ab", {.add_special = false}), ElementsAre(" ab"));
}

TEST(SentencePieceTokenizer, SpellsWhatIsNoTokenInBytes) {
  const Tokenizer t = make(sample::sentence_piece(sample::english_pieces()));
  EXPECT_THAT(t.encode("é\xFF", {.add_special = false}), ElementsAre(259, 3 + 0xC3, 3 + 0xA9, 3 + 0xFF));
}

TEST(SentencePieceTokenizer, AddsASpaceAtTheStartAndAfterSpecialTokensAndDropsIt) {
  Vocabulary v = sample::sentence_piece(sample::english_pieces());
  const Tokenizer t = make(v);
  EXPECT_THAT(pieces(t, "a</s>a"), ElementsAre("<s>", " a", "</s>", " a"));
  for (const std::string text : {"a", " a", "  ab c", "a</s>b", "", " ", "\xFF"})
    EXPECT_EQ(t.decode(t.encode(text), true), "<s>" + text);
  v.add_space_prefix = false;
  const Tokenizer bare = make(v);
  EXPECT_THAT(pieces(bare, "a", {.add_special = false}), ElementsAre("a"));
  EXPECT_EQ(bare.decode(bare.encode(" a")), " a");
}

TEST(SentencePieceTokenizer, SpelledControlTokensStayTextUnlessParsed) {
  const Tokenizer t = make(sample::sentence_piece(sample::english_pieces()));
  EXPECT_THAT(pieces(t, "<s>", {.add_special = false, .parse_special = false}), ElementsAre(" ", "<", "s>"));
  EXPECT_THAT(t.encode("<s>", {.add_special = false}), ElementsAre(1));
}

TEST(WordPieceTokenizer, FramesNormalizesAndTakesTheLongestPieces) {
  const Tokenizer t = make(
      sample::word_piece({marked("_cafe"), "s", marked("_un"), "able", marked("_!"), marked("_東"), marked("_京")}));
  EXPECT_THAT(pieces(t, "Cafés  unable!"), ElementsAre("[CLS]", " cafe", "s", " un", "able", " !", "[SEP]"));
  EXPECT_THAT(pieces(t, "東京 unix", {.add_special = false}), ElementsAre(" 東", " 京", "[UNK]"));
  EXPECT_EQ(t.decode(t.encode("cafes unable")), "cafes unable");
}

TEST(WordPieceTokenizer, TakesTheHashSpellingToo) {
  const Tokenizer t = make(sample::word_piece({"un", "##able"}));
  EXPECT_THAT(pieces(t, "unable", {.add_special = false}), ElementsAre(" un", "able"));
}

TEST(UnigramTokenizer, FindsTheBestSum) {
  const Tokenizer t = make(sample::unigram(
      {{marked("_"), -2}, {"a", -3}, {"b", -3}, {"ab", -4}, {"abb", -20}, {marked("_a"), -2}, {"bb", -4}}));
  EXPECT_THAT(pieces(t, "abb"), ElementsAre(" a", "bb", "</s>"));
  EXPECT_THAT(pieces(t, "aéùb", {.add_special = false}), ElementsAre(" a", "<unk>", "b"));
}

// A map that replaces "B" by "b": unit 0 has its children at 0 ^ label, unit 0x42 has a leaf at 0x42 ^ 0x01.
TEST(UnigramTokenizer, AppliesTheCharacterMap) {
  Vocabulary v = sample::unigram({{marked("_"), -2}, {"a", -3}, {"b", -3}});
  std::vector<uint32_t> units(0x44, 0);
  units[0x42] = 1u << 10 | 1u << 8 | 0x42;
  units[0x43] = 1u << 31 | 0;
  const auto put = [&v](uint32_t x) {
    for (int i = 0; i < 4; ++i) v.charsmap.push_back(static_cast<char>(x >> (8 * i) & 0xFF));
  };
  put(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) put(unit);
  v.charsmap += std::string("b\0", 2);
  EXPECT_THAT(pieces(make(v), "aB", {.add_special = false}), ElementsAre(" ", "a", "b"));
  v.charsmap.pop_back();
  EXPECT_THAT(Tokenizer::make(v).refusal().reason, HasSubstr("do not end in 0"));
  v.charsmap = "\xFF\xFF\xFF\x7F";
  EXPECT_EQ(Tokenizer::make(v).refusal().subject, "tokenizer.ggml.precompiled_charsmap");
}

TEST(SpecialTokens, TheLongestTextIsFoundFirstAndUserDefinedOnesAlways) {
  Vocabulary v = sample::byte_level({{"a", "b"}});
  sample::add(v, "<tag><tag>", 0, TokenType::UserDefined);
  const Tokenizer t = make(v);
  EXPECT_THAT(pieces(t, "a<tag><tag><tag><|im_end|>"), ElementsAre("a", "<tag><tag>", "<tag>", "<|im_end|>"));
  EXPECT_EQ(t.encode("<tag>", {.parse_special = false}).size(), 1u);
  EXPECT_GT(t.encode("<|im_end|>", {.parse_special = false}).size(), 1u);
}

TEST(SpecialTokens, PhiThreeTakesTheSpaceAfterThem) {
  Vocabulary v = sample::byte_level({{"a", "b"}});
  v.name = "Phi-3 mini";
  EXPECT_THAT(pieces(make(v), "a <tag> \n ab"), ElementsAre("a", " ", "<tag>", "ab"));
}

TEST(SpecialTokens, FlagsDecideBosAndEos) {
  Vocabulary v = sample::byte_level({{"a", "b"}});
  EXPECT_THAT(pieces(make(v), "ab"), ElementsAre("ab"));
  v.add_eos = true;
  EXPECT_THAT(pieces(make(v), "ab"), ElementsAre("ab", "<|im_end|>"));
  v.bos = v.eos;
  v.add_bos = true;
  EXPECT_THAT(pieces(make(v), "ab"), ElementsAre("<|im_end|>", "ab", "<|im_end|>"));
  EXPECT_THAT(pieces(make(v), "ab", {.add_special = false}), ElementsAre("ab"));
}

TEST(SpecialTokens, GenerationEndsAtKnownTextsWhateverTheirType) {
  Vocabulary v = sample::byte_level({{"a", "b"}});
  const Token eot = sample::add(v, "<end_of_turn>", 0);
  const Token repo = sample::add(v, "<|repo_name|>", 0, TokenType::Control);
  const Tokenizer t = make(v);
  EXPECT_TRUE(t.ends_generation(*t.eos()));
  EXPECT_TRUE(t.ends_generation(eot));
  EXPECT_TRUE(t.ends_generation(repo));
  EXPECT_FALSE(t.ends_generation('a'));
  EXPECT_FALSE(t.ends_generation(-1));
  EXPECT_FALSE(t.ends_generation(1 << 30));
  EXPECT_EQ(t.piece(eot), "");
  EXPECT_THAT(t.notes(), ElementsAre(HasSubstr("<end_of_turn>")));
}

TEST(SpecialTokens, InHarmonyAMessageEndIsNoEnd) {
  Vocabulary v = sample::byte_level({{"a", "b"}});
  const Token end = sample::add(v, "<|end|>", 0, TokenType::Control);
  EXPECT_TRUE(make(v).ends_generation(end));
  sample::add(v, "<|return|>", 0, TokenType::Control);
  sample::add(v, "<|call|>", 0, TokenType::Control);
  EXPECT_FALSE(make(v).ends_generation(end));
}

TEST(Tokenizer, LongLinesAreEncodedInSeconds) {
  const std::string spaces(1 << 20, ' ');
  const std::string letters(1 << 20, 'a');
  const Tokenizer bpe = make(sample::byte_level(sample::english_merges()));
  EXPECT_EQ(bpe.encode(spaces).size(), spaces.size() / 2);
  EXPECT_EQ(bpe.encode(letters).size(), letters.size() / 2);
  const Tokenizer spm = make(sample::sentence_piece(sample::english_pieces()));
  EXPECT_EQ(spm.decode(spm.encode(letters)), letters);
  EXPECT_EQ(spm.decode(spm.encode(spaces)), spaces);
  const Tokenizer ugm = make(sample::unigram({{marked("_"), -2}, {"a", -3}, {"aaa", -4}}));
  EXPECT_EQ(ugm.decode(ugm.encode(letters)), letters);
  const Tokenizer wpm = make(sample::word_piece({marked("_a"), "aa"}));
  EXPECT_EQ(wpm.encode(letters).size(), 3u);
}

TEST(Tokenizer, ReadsACheckpoint) {
  gguf::FileSpec spec;
  spec.metadata = {
      {"general.architecture", gguf::value_string("llama")},
      {"tokenizer.ggml.model", gguf::value_string("llama")},
      {"tokenizer.ggml.tokens", gguf::value_strings({"<unk>", "<s>", "</s>", "a", marked("_"), marked("_a")})},
      {"tokenizer.ggml.scores", gguf::value_f32s({0, 0, 0, -1, -2, -3})},
      {"tokenizer.ggml.token_type", gguf::value_i32s({2, 3, 3, 1, 1, 1})}};
  const auto bytes = gguf::write_bytes(
      spec, [](size_t) -> Result<std::span<const std::byte>> { return std::span<const std::byte>(); });
  ASSERT_TRUE(bytes.ok());
  const auto checkpoint = gguf::Checkpoint::parse(*bytes, "sample");
  ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
  const auto t = Tokenizer::load(*checkpoint);
  ASSERT_TRUE(t.ok()) << to_text(t.refusal());
  EXPECT_THAT(t->encode("aa"), ElementsAre(1, 5, 3));
  EXPECT_EQ(t->kind(), "llama");
  EXPECT_EQ(t->size(), 6);
}

TEST(StreamDecoder, CutsAtWholeCharactersOnly) {
  const Tokenizer t = make(sample::byte_level(sample::english_merges()));
  StreamDecoder stream(t);
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x99), "");
  EXPECT_EQ(stream.push(0x82), "\xF0\x9F\x99\x82");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push('a'),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(StreamDecoder, GivesTheDecodedTextInPieces) {
  const Tokenizer t = make(sample::byte_level(sample::english_merges()));
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Token> tokens = t.encode(random_text(random));
    StreamDecoder stream(t);
    std::string out;
    for (const Token token : tokens) {
      const std::string part = stream.push(token);
      EXPECT_EQ(part, valid_utf8(part));
      out += part;
    }
    EXPECT_EQ(out + stream.flush(), valid_utf8(t.decode(tokens)));
  }
}

TEST(StreamDecoder, AContinuationKeepsTheLeadingSpace) {
  const Tokenizer t = make(sample::sentence_piece(sample::english_pieces()));
  const Token word = t.encode("a", {.add_special = false}).front();
  EXPECT_EQ(StreamDecoder(t).push(word), "a");
  EXPECT_EQ(StreamDecoder(t, StreamDecoder::Start::Continuation).push(word), " a");
}

}  // namespace
}  // namespace tw::text
