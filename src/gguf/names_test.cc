#include "gguf/names.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gguf/name_index.h"

namespace tw::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Names, OfPrintableUtf8AreFine) {
  for (const char* name : {"k", "blk.0.attn_q.weight", "with space", "\xc3\xa9", "\xe2\x98\x80", "\xf0\x9f\x8c\x9e",
                           "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"})
    EXPECT_EQ(name_fault(name, 255), std::nullopt) << name;
}

TEST(Names, OfTheGreatestLengthAreFine) {
  EXPECT_EQ(name_fault(std::string(255, 'x'), 255), std::nullopt);
  EXPECT_EQ(name_fault(std::string(256, 'x'), 255), "has 256 bytes, expected at most 255");
}

TEST(Quote, EscapesWhatATerminalWouldTakeAsACommand) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quote("\x1b[31m\n\x7f\xff"), R"("\x1b[31m\x0a\x7f\xff")");
  EXPECT_EQ(quote("\xe2\x98\x80"), "\"\xe2\x98\x80\"");
}

TEST(Quote, ShortensAtAWholeCharacter) {
  EXPECT_EQ(quote(std::string(81, 'x')), "\"" + std::string(80, 'x') + "...\" (81 bytes)");
  const std::string most(79, 'x');
  EXPECT_EQ(quote(fmt::format("{}\xe2\x98\x80y", most)), fmt::format("\"{}\xe2\x98\x80...\" (83 bytes)", most));
}

TEST(NearNames, AreTheNearestFirst) {
  const std::vector<std::string_view> names = {"attn_v", "attn_norm", "attn_q", "ffn_up", "attn_qkv", "tattn_qq"};
  EXPECT_THAT(near_names("attn_k", names), ElementsAre("attn_q", "attn_v", "attn_qkv"));
  EXPECT_THAT(near_names("attn_q", names), ElementsAre("attn_q", "attn_v", "attn_qkv"));
  EXPECT_THAT(near_names("output.weight", names), IsEmpty());
  EXPECT_THAT(near_names("x", {}), IsEmpty());
}

TEST(NearNames, CountInsertionsDeletionsAndReplacements) {
  EXPECT_THAT(near_names("kitten", {"sitting"}), IsEmpty());  // three edits, two are allowed
  EXPECT_THAT(near_names("kitten", {"sitten", "mitte", "kittens!"}), ElementsAre("sitten", "kittens!", "mitte"));
  EXPECT_THAT(near_names("intention+++", {"execution+++"}), IsEmpty());  // five edits
  EXPECT_THAT(near_names("saturday+++", {"sunday+++"}), IsEmpty());      // three edits, two are allowed
  EXPECT_THAT(near_names("saturday++++", {"sunday++++"}), ElementsAre("sunday++++"));
}

TEST(NameIndex, FindsEveryNameAndNoOther) {
  const NameIndex index({"b", "", "a", "ab"});
  EXPECT_EQ(index.find("b"), 0u);
  EXPECT_EQ(index.find(""), 1u);
  EXPECT_EQ(index.find("a"), 2u);
  EXPECT_EQ(index.find("ab"), 3u);
  EXPECT_EQ(index.find("aa"), std::nullopt);
  EXPECT_EQ(index.find("c"), std::nullopt);
  EXPECT_EQ(index.duplicate(), std::nullopt);
  EXPECT_EQ(NameIndex().find(""), std::nullopt);
}

TEST(NameIndex, NamesTheEarliestDuplicateAndItsFirst) {
  EXPECT_EQ(NameIndex({"b", "a", "c", "c", "b", "b"}).duplicate(), std::pair(size_t{3}, size_t{2}));
  EXPECT_EQ(NameIndex({"b", "a", "b", "c", "c"}).duplicate(), std::pair(size_t{2}, size_t{0}));
}

}  // namespace
}  // namespace tw::gguf
