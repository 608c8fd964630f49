// Checkpoints split over several files.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "gguf/checkpoint.h"
#include "gguf/file_builder.h"
#include "gguf/temporary_folder.h"

namespace tw::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One part with one tensor of one value, as it says it is.
FileBuilder part(uint16_t number, uint16_t count, int32_t tensors, std::string_view tensor) {
  FileBuilder file(1, 4);
  file.string("part.name", fmt::format("part {}", number));
  file.key("split.no", ValueType::U16).number(number);
  file.key("split.count", ValueType::U16).number(count);
  file.key("split.tensors.count", ValueType::I32).number(tensors);
  file.tensor(tensor, {1}, 0).pad(32).number(static_cast<float>(number));
  return file;
}

std::string file_name(int number, int count) { return fmt::format("m-{:05}-of-{:05}.gguf", number + 1, count); }

class SplitCheckpoint : public ::testing::Test {
 protected:
  std::filesystem::path put(int place, const FileBuilder& file, int count = 3) const {
    return folder_.file(file_name(place, count), file.bytes());
  }
  void put_all() const {
    put(0, part(0, 3, 3, "a"));
    put(1, part(1, 3, 3, "b"));
    put(2, part(2, 3, 3, "c"));
  }
  [[nodiscard]] std::filesystem::path path(int place) const { return folder_.path() / file_name(place, 3); }
  [[nodiscard]] Refusal refusal(int place = 0) const {
    const auto checkpoint = Checkpoint::open(path(place));
    return checkpoint ? refuse(RefusalKind::Usage, "", "nothing was refused") : checkpoint.refusal();
  }
  const TemporaryFolder folder_;
};

TEST_F(SplitCheckpoint, OpensFromAnyPart) {
  put_all();
  for (int place : {0, 1, 2}) {
    const auto opened = Checkpoint::open(path(place));
    ASSERT_TRUE(opened.ok()) << to_text(opened.refusal());
    EXPECT_EQ(opened->label(), path(place).string());
    EXPECT_EQ(opened->file_bytes(), 3 * std::filesystem::file_size(path(0)));
    EXPECT_EQ(opened->get_string("part.name").value(), "part 0");
    ASSERT_EQ(opened->tensors().size(), 3u);
    for (uint32_t file : {0u, 1u, 2u}) {
      const TensorInfo& tensor = opened->tensors()[file];
      EXPECT_EQ(tensor.name, std::string(1, static_cast<char>('a' + file)));
      EXPECT_EQ(tensor.file, file);
      float value = -1;
      std::memcpy(&value, opened->bytes(tensor).data(), sizeof(value));
      EXPECT_EQ(value, static_cast<float>(file));
    }
  }
}

TEST_F(SplitCheckpoint, OfOnePartHasAnyName) {
  EXPECT_TRUE(Checkpoint::open(folder_.file("any.gguf", part(0, 1, 1, "a").bytes())).ok());
}

TEST_F(SplitCheckpoint, WithoutAPartIsRefusedByName) {
  put_all();
  std::filesystem::remove(path(1));
  EXPECT_EQ(refusal().kind, RefusalKind::Missing);
  EXPECT_EQ(refusal().subject, path(1).string());
  EXPECT_THAT(refusal(2).reason, HasSubstr("expected part 2 of 3 beside " + path(2).string()));
}

TEST_F(SplitCheckpoint, OfManyClaimedPartsStopsAtTheFirstMissing) {
  const auto first = put(0, part(0, 65535, 3, "a"), 65535);
  EXPECT_THAT(to_text(Checkpoint::open(first).refusal()), HasSubstr("m-00002-of-65535.gguf: the file is not there"));
}

TEST_F(SplitCheckpoint, UnderAnotherNameIsRefused) {
  const auto path = folder_.file("model.gguf", part(1, 3, 3, "a").bytes());
  const Refusal refusal = Checkpoint::open(path).refusal();
  EXPECT_EQ(refusal.kind, RefusalKind::Conflict);
  EXPECT_THAT(refusal.reason, HasSubstr("part 2 of 3, expected its name to end in -00002-of-00003.gguf"));
}

TEST_F(SplitCheckpoint, WhosePartsAreExchangedIsRefused) {
  put_all();
  put(1, part(2, 3, 3, "b"));
  EXPECT_EQ(refusal().kind, RefusalKind::Conflict);
  EXPECT_EQ(refusal().subject, path(1).string());
  EXPECT_THAT(refusal().reason, AllOf(HasSubstr("says it is part 3 of 3"), HasSubstr("expected part 2 of 3")));
}

TEST_F(SplitCheckpoint, WithAPartOfAnotherSetIsRefused) {
  put_all();
  put(2, part(2, 4, 3, "c"));
  EXPECT_THAT(refusal().reason, AllOf(HasSubstr("part 3 of 4 with 3 tensors"), HasSubstr("expected part 3 of 3")));
  put(2, part(2, 3, 9, "c"));
  EXPECT_THAT(refusal().reason, AllOf(HasSubstr("part 3 of 3 with 9 tensors"), HasSubstr("part 3 of 3 with 3")));
}

TEST_F(SplitCheckpoint, WithAWholeCheckpointAsAPartIsRefused) {
  put_all();
  put(2, FileBuilder(0, 0));
  EXPECT_THAT(refusal().reason, HasSubstr("says it is part 1 of 1 with 0 tensors"));
}

TEST_F(SplitCheckpoint, WithAMalformedPartIsRefusedByItsName) {
  put_all();
  put(2, FileBuilder(7, 0));
  EXPECT_EQ(refusal().kind, RefusalKind::Malformed);
  EXPECT_THAT(to_text(refusal()), HasSubstr(path(2).string() + ": at byte 8: the file claims 7 tensors"));
}

TEST_F(SplitCheckpoint, WithATensorInTwoPartsIsRefused) {
  put_all();
  put(2, part(2, 3, 3, "a"));
  EXPECT_EQ(refusal().subject, path(2).string());
  EXPECT_THAT(refusal().reason, AllOf(HasSubstr("tensor \"a\""), HasSubstr(path(0).string() + " has it")));
}

TEST_F(SplitCheckpoint, WithAnotherNumberOfTensorsIsRefused) {
  put(0, part(0, 3, 4, "a"));
  put(1, part(1, 3, 4, "b"));
  put(2, part(2, 3, 4, "c"));
  EXPECT_THAT(refusal().reason, HasSubstr("found 3 tensors in 3 parts, expected 4 as split.tensors.count says"));
}

std::string answer_to(const FileBuilder& file) {
  const auto checkpoint = Checkpoint::parse(file.bytes(), "part.gguf");
  return checkpoint ? "it was read" : to_text(checkpoint.refusal());
}

TEST(SplitKeys, ThatContradictThemselvesAreRefused) {
  EXPECT_THAT(answer_to(part(0, 0, 1, "a")),
              HasSubstr("split.no is 0 and split.count is 0, expected the number to be below"));
  EXPECT_THAT(answer_to(part(3, 3, 1, "a")), HasSubstr("split.no is 3 and split.count is 3"));
  EXPECT_THAT(answer_to(part(0, 1, -1, "a")), HasSubstr("split.tensors.count: at byte "));
}

TEST(SplitKeys, ThatAreMissingOrOfAnotherTypeAreRefused) {
  EXPECT_THAT(answer_to(FileBuilder(0, 1).u32("split.count", 1)), HasSubstr("has split.count, expected split.no too"));
  EXPECT_THAT(answer_to(FileBuilder(0, 2).u32("split.count", 1).u32("split.no", 0)),
              HasSubstr("expected split.tensors.count"));
  EXPECT_THAT(answer_to(FileBuilder(0, 1).string("split.count", "3")),
              HasSubstr("split.count: at byte 24 of part.gguf: the value is \"3\""));
}

TEST(SplitKeys, OfAPartInMemoryAreRefused) {
  EXPECT_THAT(answer_to(part(1, 3, 3, "a")), HasSubstr("part 2 of 3 of a split checkpoint in memory"));
}

}  // namespace
}  // namespace tw::gguf
