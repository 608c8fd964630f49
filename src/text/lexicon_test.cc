#include "text/lexicon.h"

#include <gtest/gtest.h>

#include "text/merge_table.h"

namespace tw::text {
namespace {

std::vector<std::string> many(size_t count) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back("t" + std::to_string(i * 7919));
  return tokens;
}

TEST(Lexicon, FindsEveryTokenAndNothingElse) {
  for (const size_t count : {0, 1, 2, 3, 1000}) {
    const std::vector<std::string> tokens = many(count);
    const Lexicon lexicon(tokens);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(lexicon.find(tokens[i]), static_cast<Token>(i));
    for (const char* other : {"", "t", "t1", "u0"}) EXPECT_EQ(lexicon.find(other), std::nullopt) << other;
    EXPECT_FALSE(lexicon.duplicate().has_value());
  }
}

TEST(Lexicon, AGuessChangesNoAnswer) {
  const std::vector<std::string> tokens{"a", "b", "", "ab", "b"};
  const Lexicon lexicon(tokens);
  for (const char* text : {"a", "b", "", "ab", "c"})
    for (Token guess = -2; guess < 7; ++guess) EXPECT_EQ(lexicon.find_near(text, guess), lexicon.find(text)) << text;
}

TEST(Lexicon, NamesTheFirstTextThatStandsTwice) {
  const std::vector<std::string> tokens{"a", "", "b", "", "b", "a"};
  const Lexicon lexicon(tokens);
  EXPECT_EQ(lexicon.duplicate(), (std::pair<Token, Token>(2, 4)));
  EXPECT_EQ(lexicon.find("b"), 2);
  EXPECT_EQ(lexicon.longest(), 1U);
}

TEST(MergeTable, FindsTheFirstRuleOfEachPair) {
  MergeTable table(3000);
  for (Token i = 0; i < 1000; ++i)
    for (Token j = 0; j < 3; ++j) table.add({i, i ^ j, static_cast<uint32_t>(3 * i + j), i + j});
  table.add({5, 5, 9, 9});
  for (Token i = 0; i < 1000; ++i) {
    for (Token j = 0; j < 3; ++j) {
      const MergeRule* rule = table.find(i, i ^ j);
      ASSERT_NE(rule, nullptr);
      EXPECT_EQ(rule->rank, static_cast<uint32_t>(3 * i + j));
      EXPECT_EQ(rule->made, i + j);
    }
    EXPECT_EQ(table.find(i, i ^ 3), nullptr);
  }
  EXPECT_EQ(table.find(-1, 0), nullptr);
  EXPECT_EQ(table.find(0, -1), nullptr);
  EXPECT_EQ(MergeTable().find(0, 0), nullptr);
}

}  // namespace
}  // namespace tw::text
