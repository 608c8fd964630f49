#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <string>

#include "text/utf8.h"

namespace tw::text {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string_view>;

Words split(std::string_view name, std::string_view text) {
  const PreTokenizerRow* row = find_pretokenizer(name);
  EXPECT_NE(row, nullptr) << name;
  return PreTokenizer(row->rules).split(text);
}

std::string joined(const Words& words) {
  std::string out;
  for (const std::string_view word : words) out.append(word);
  return out;
}

TEST(PreTokenizerTable, NoNameStandsTwice) {
  std::set<std::string_view> seen;
  for (const PreTokenizerRow& row : pretokenizer_rows()) {
    for (const std::string_view name : row.names) EXPECT_TRUE(seen.insert(name).second) << name;
  }
  EXPECT_GT(seen.size(), 80u);
  EXPECT_EQ(find_pretokenizer("no such name"), nullptr);
}

TEST(PreTokenizer, WordsAreTheTextAgainForEveryRowOnRandomText) {
  const std::vector<std::string> parts = {"a",       "Zed",  " ",  "  ",  "\n",   "\r\n",     "\t",
                                          "1",       "2345", "'s", "'LL", "é",    "東",       "京",
                                          "한",      "ไทย",  "!",  "...", "\xFF", "\xE2\x82", "\xF0\x9F\x99\x82",
                                          "\xCC\x81"};
  std::mt19937 random(7);
  for (const PreTokenizerRow& row : pretokenizer_rows()) {
    const PreTokenizer splitter(row.rules);
    for (int round = 0; round < 20; ++round) {
      std::string text;
      for (int i = 0; i < 60; ++i) text += parts[random() % parts.size()];
      const Words words = splitter.split(text);
      EXPECT_EQ(joined(words), text) << row.names.front() << " round " << round;
      for (const std::string_view word : words) EXPECT_FALSE(word.empty());
    }
    EXPECT_TRUE(splitter.split("").empty());
  }
}

TEST(PreTokenizer, Gpt2KeepsTheSpaceWithTheWordAndNumbersWhole) {
  EXPECT_THAT(split("gpt-2", "I've  been 12345 times\n!?"),
              ElementsAre("I", "'ve", " ", " been", " 12345", " times", "\n", "!?"));
}

TEST(PreTokenizer, LlamaBpeCutsNumbersInThreesFromTheLeft) {
  EXPECT_THAT(split("llama-bpe", "We'LL pay 12345.\n\n x"),
              ElementsAre("We", "'LL", " pay", " ", "123", "45", ".\n\n", " x"));
}

TEST(PreTokenizer, Qwen2TakesSingleDigitsAndQwen35KeepsMarksInWords) {
  EXPECT_THAT(split("qwen2", "a12"), ElementsAre("a", "1", "2"));
  EXPECT_THAT(split("qwen2", "e\xCC\x81t"), ElementsAre("e", "\xCC\x81t"));
  EXPECT_THAT(split("qwen35", "e\xCC\x81t"), ElementsAre("e\xCC\x81t"));
}

TEST(PreTokenizer, Gpt4oCutsWhereTheCaseRises) {
  EXPECT_THAT(split("gpt-4o", "HTTPServer camelCase's"), ElementsAre("HTTPServer", " camel", "Case's"));
}

TEST(PreTokenizer, DeepseekCutsNumbersThenHan) {
  EXPECT_THAT(split("deepseek-v3", "1234 東京x"), ElementsAre("123", "4", " ", "東京", "x"));
  EXPECT_THAT(split("deepseek-llm", "a\nb 12  "), ElementsAre("a", "\n", "b", " ", "12", "  "));
}

TEST(PreTokenizer, KimiKeepsHanRunsApartFromLetters) {
  EXPECT_THAT(split("kimi-k2", "ab東京cd 1234"), ElementsAre("ab", "東京", "cd", " ", "123", "4"));
}

TEST(PreTokenizer, GroupsOfThreeAreCountedFromTheRight) {
  EXPECT_THAT(split("afmoe", "1234567"), ElementsAre("1", "234", "567"));
  EXPECT_THAT(split("superbpe", "12345"), ElementsAre("12", "345"));
  EXPECT_THAT(split("superbpe", "123456"), ElementsAre("123", "456"));
  EXPECT_THAT(split("tiny_aya", "1234 1234x"), ElementsAre("1", "234", " ", "123", "4", "x"));
}

TEST(PreTokenizer, Jais2CutsWhiteSpaceIntoPowersOfTwo) {
  const std::string run(523, ' ');
  const std::string text = "a  \n" + run + "b";
  const Words words = split("jais-2", text);
  std::vector<size_t> sizes;
  for (const std::string_view word : words) sizes.push_back(word.size());
  // The last space goes with the word.
  EXPECT_THAT(sizes, ElementsAre(1, 3, 512, 8, 2, 2));
  EXPECT_EQ(words.back(), " b");
}

TEST(PreTokenizer, BloomLeavesPunctuationToItself) {
  EXPECT_THAT(split("bloom", "one two, three"), ElementsAre("one", " two", ",", " three"));
}

TEST(PreTokenizer, OldMongolianVowelSeparatorIsNoSpace) {
  EXPECT_THAT(split("gpt-2", "\xE1\xA0\x8E!"), ElementsAre("\xE1\xA0\x8E!"));
}

TEST(PreTokenizer, BytesThatAreNotUtf8AreWordsOfTheirOwn) {
  EXPECT_THAT(split("gpt-2", "a\xFF\xFE b"), ElementsAre("a", "\xFF\xFE", " b"));
}

// Lines that make a careless pattern scan the rest of the line from every place in it.
TEST(PreTokenizer, LongLinesTakeLinearTime) {
  constexpr size_t kLength = 1 << 18;
  const std::string lines[] = {std::string(kLength, ' '),       std::string(kLength, ' ') + "a",
                               std::string(kLength, 'a'),       std::string(kLength, 'A') + "1",
                               std::string(kLength, '7') + "x", std::string(kLength, '\n'),
                               std::string(kLength, '!')};
  for (const PreTokenizerRow& row : pretokenizer_rows()) {
    const PreTokenizer splitter(row.rules);
    for (const std::string& line : lines) {
      const auto start = std::chrono::steady_clock::now();
      const Words words = splitter.split(line);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      EXPECT_LT(seconds.count(), 5) << row.names.front() << " on a line of '" << line.front() << "'";
      EXPECT_EQ(joined(words).size(), line.size());
    }
  }
}

}  // namespace
}  // namespace tw::text
