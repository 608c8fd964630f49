#include "gguf/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "gguf/file_builder.h"
#include "gguf/sample_files.h"
#include "gguf/temporary_folder.h"

namespace tw::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using T = ValueType;

// Keeps the bytes that a checkpoint reads.
struct Parsed {
  std::vector<std::byte> bytes;
  Checkpoint checkpoint;
};

Parsed parsed(const FileBuilder& file) { return {file.bytes(), Checkpoint::parse(file.bytes(), "unused").value()}; }

TEST(Checkpoint, Version2ReadsAsVersion3Does) {
  FileBuilder file(1, 1, 2);
  file.string("general.name", "two").tensor("t", {2}, 0).pad(32).number(1.5f).number(-2.0f);
  const auto checkpoint = Checkpoint::parse(file.bytes(), "two.gguf").value();
  EXPECT_EQ(checkpoint.version(), 2u);
  EXPECT_EQ(checkpoint.label(), "two.gguf");
  EXPECT_EQ(checkpoint.get_string("general.name").value(), "two");
  const TensorInfo& tensor = *checkpoint.tensor("t").value();
  EXPECT_EQ(tensor.values(), 2u);
  EXPECT_EQ(tensor.bytes, 8u);
  EXPECT_EQ(tensor.offset, file.size() - 8);
  EXPECT_EQ(checkpoint.bytes(tensor).data(), file.bytes().data() + tensor.offset);
}

TEST(Checkpoint, EveryPrefixIsReadOrRefused) {
  for (const SampleFile& sample : sample_files()) {
    const std::vector<std::byte> whole = write_bytes(sample.spec, source_of(sample)).value();
    const auto complete = Checkpoint::parse(whole, sample.name).value();
    uint64_t end = whole.size();  // padding may be cut; with no tensors the table's end is the end of what counts
    for (const TensorInfo& tensor : complete.tensors()) end = tensor.offset + tensor.bytes;
    for (size_t length = 0; length <= whole.size(); ++length) {
      const std::vector<std::byte> prefix(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      const auto checkpoint = Checkpoint::parse(prefix, "prefix");
      if (!complete.tensors().empty()) {
        ASSERT_EQ(checkpoint.ok(), length >= end) << sample.name << " " << length;
      }
      if (!checkpoint) {
        ASSERT_THAT(to_text(checkpoint.refusal()), HasSubstr("prefix: at byte ")) << sample.name << " " << length;
      }
    }
  }
}

TEST(Checkpoint, EveryByteSetToAnythingIsReadOrRefused) {
  for (const SampleFile& sample : sample_files()) {
    std::vector<std::byte> bytes = write_bytes(sample.spec, source_of(sample)).value();
    const size_t head = std::min<size_t>(bytes.size(), 700);
    for (size_t at = 0; at < head; ++at) {
      const std::byte kept = bytes[at];
      for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        bytes[at] = std::byte(value);
        const auto checkpoint = Checkpoint::parse(bytes, "changed");
        if (!checkpoint) continue;
        for (const TensorInfo& tensor : checkpoint->tensors()) {
          ASSERT_EQ(checkpoint->bytes(tensor).size(), tensor.rows() * tensor.row_bytes());
        }
      }
      bytes[at] = kept;
    }
  }
}

TEST(Checkpoint, TensorsMayLieInAnyOrderWithGaps) {
  FileBuilder file(3, 0);
  file.tensor("last", {1}, 128).tensor("first", {1}, 0).tensor("middle", {8}, 64).pad(32).zeros(132);
  EXPECT_TRUE(Checkpoint::parse(file.bytes(), "gaps").ok());
}

FileBuilder numbers() {
  FileBuilder file(0, 11);
  file.u32("u32", 7).key("i32", T::I32).number(int32_t{-7}).key("u64", T::U64).number(UINT64_MAX);
  file.key("f32", T::F32).number(0.5f).key("bool", T::Bool).raw("\1").string("string", "text");
  file.array("i32s", T::I32, 2).number(int32_t{-1}).number(int32_t{2});
  file.array("u64s", T::U64, 2).number(uint64_t{1}).number(UINT64_MAX);
  file.array("f32s", T::F32, 1).number(0.25f).array("bools", T::Bool, 2).raw(std::string("\1\0", 2));
  return file.array("strings", T::String, 2).text("a").text("");
}

TEST(CheckpointKeys, AreReadAsWhatTheyServeFor) {
  const Parsed file = parsed(numbers());
  const Checkpoint& keys = file.checkpoint;
  EXPECT_EQ(keys.get_u64("u32").value(), 7u);
  EXPECT_EQ(keys.get_u64("u64").value(), UINT64_MAX);
  EXPECT_EQ(keys.get_f64("f32").value(), 0.5);
  EXPECT_EQ(keys.get_f64("i32").value(), -7.0);
  EXPECT_EQ(keys.get_bool("bool").value(), true);
  EXPECT_EQ(keys.get_string("string").value(), "text");
  EXPECT_EQ(keys.find_u64("u32").value(), 7u);
  EXPECT_EQ(keys.find_f64("u32").value(), 7.0);
  EXPECT_EQ(keys.find_bool("bool").value(), true);
  EXPECT_EQ(keys.find_string("string").value(), "text");
  EXPECT_EQ(keys.find_i64s("i32s").value(), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(keys.find_f64s("i32s").value(), (std::vector<double>{-1, 2}));
  EXPECT_EQ(keys.find_f64s("f32s").value(), (std::vector<double>{0.25}));
  EXPECT_EQ(keys.find_bools("bools").value(), (std::vector<bool>{true, false}));
  EXPECT_EQ(keys.find_strings("strings").value(), (std::vector<std::string>{"a", ""}));
}

TEST(CheckpointKeys, ThatAreAbsentAreNothingOrMissing) {
  const Parsed file = parsed(FileBuilder(0, 2).u32("llama.block_count", 1).u32("general.version", 1));
  const Checkpoint& keys = file.checkpoint;
  EXPECT_EQ(keys.find("block_count"), nullptr);
  EXPECT_EQ(keys.find_u64("none").value(), std::nullopt);
  EXPECT_EQ(keys.find_f64s("none").value(), std::nullopt);
  EXPECT_EQ(keys.find_strings("none").value(), std::nullopt);
  const Refusal refusal = keys.get_u64("lama.block_count").refusal();
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_EQ(to_text(refusal), "lama.block_count: unused has no such key. Names near to it: llama.block_count");
}

template <class Value>
std::string text_of(const Result<Value>& result) {
  if (result) return "it was read";
  EXPECT_EQ(result.refusal().kind, RefusalKind::Malformed);
  return to_text(result.refusal());
}

TEST(CheckpointKeys, OfAnotherTypeAreRefusedByNamePlaceAndType) {
  const Parsed file = parsed(numbers());
  const Checkpoint& keys = file.checkpoint;
  EXPECT_EQ(text_of(keys.get_u64("i32")),
            "i32: at byte 43 of unused: the value is -7 (i32), expected an integer that is not negative");
  EXPECT_THAT(text_of(keys.get_u64("f32")), HasSubstr("the value is 0.5 (f32)"));
  EXPECT_THAT(text_of(keys.get_u64("bool")), HasSubstr("the value is true (bool)"));
  EXPECT_THAT(text_of(keys.get_u64("string")), HasSubstr("the value is \"text\" (string)"));
  EXPECT_THAT(text_of(keys.get_u64("i32s")), HasSubstr("the value is an array of 2 i32"));
  EXPECT_THAT(text_of(keys.get_f64("u64")), HasSubstr("18446744073709551615 (u64), expected a number that a double"));
  EXPECT_THAT(text_of(keys.get_f64("bool")), HasSubstr("expected a number"));
  EXPECT_THAT(text_of(keys.get_bool("u32")), HasSubstr("7 (u32), expected a bool"));
  EXPECT_THAT(text_of(keys.get_string("u32")), HasSubstr("7 (u32), expected a string"));
  EXPECT_THAT(text_of(keys.find_u64("string")), HasSubstr("expected an integer"));
  EXPECT_THAT(text_of(keys.find_i64s("u64s")),
              AllOf(HasSubstr("u64s: at byte "), HasSubstr("item 1 is 18446744073709551615, expected")));
  EXPECT_THAT(text_of(keys.find_i64s("f32s")), HasSubstr("an array of 1 f32, expected an array of integers"));
  EXPECT_THAT(text_of(keys.find_i64s("u32")), HasSubstr("7 (u32), expected an array"));
  EXPECT_THAT(text_of(keys.find_f64s("strings")), HasSubstr("an array of 2 string, expected an array of numbers"));
  EXPECT_THAT(text_of(keys.find_f64s("bools")), HasSubstr("an array of 2 bool"));
  EXPECT_THAT(text_of(keys.find_strings("i32s")), HasSubstr("expected an array of strings"));
  EXPECT_THAT(text_of(keys.find_bools("i32s")), HasSubstr("expected an array of bools"));
}

TEST(CheckpointKeys, OfTheFormatItselfAreCheckedForTheirType) {
  FileBuilder text(0, 1);
  text.string("general.alignment", "32");
  EXPECT_EQ(text_of(Checkpoint::parse(text.bytes(), "bad.gguf")),
            "general.alignment: at byte 24 of bad.gguf: the value is \"32\" (string), expected an integer that is not "
            "negative");
  FileBuilder negative(0, 1);
  negative.key("general.alignment", T::I32).number(int32_t{-32});
  EXPECT_THAT(text_of(Checkpoint::parse(negative.bytes(), "bad.gguf")), HasSubstr("the value is -32 (i32)"));
}

TEST(CheckpointTensors, ThatAreMissingAreRefusedWithNearNames) {
  FileBuilder file(2, 0);
  file.tensor("blk.0.attn_q.weight", {1}, 0).tensor("output.weight", {1}, 32).pad(32).zeros(64);
  const Parsed kept = parsed(file);
  const Refusal refusal = kept.checkpoint.tensor("blk.0.attn_k.weight").refusal();
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_EQ(to_text(refusal),
            "blk.0.attn_k.weight: unused has no such tensor among its 2. Names near to it: blk.0.attn_q.weight");
  EXPECT_EQ(kept.checkpoint.find_tensor("blk.0"), nullptr);
  EXPECT_EQ(kept.checkpoint.tensor("something else").refusal().remedy, "");
}

TEST(CheckpointFiles, ForgottenPagesAreReadAgain) {
  const TemporaryFolder folder;
  FileBuilder file(1, 0);
  file.tensor("t", {65537}, 24, 0).pad(32);  // bytes, on more than 16 pages
  for (int i = 0; i < 65537; ++i) file.number(static_cast<uint8_t>(i * 7));
  const auto checkpoint = Checkpoint::open(folder.file("pages.gguf", file.bytes())).value();
  const TensorInfo& tensor = checkpoint.tensors()[0];
  const auto expected = std::span(file.bytes()).subspan(tensor.offset);
  EXPECT_TRUE(std::ranges::equal(checkpoint.bytes(tensor), expected));
  checkpoint.forget_pages(tensor);
  EXPECT_TRUE(std::ranges::equal(checkpoint.bytes(tensor), expected));
}

TEST(CheckpointFiles, ThatAreNoneAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [](const std::filesystem::path& path) { return Checkpoint::open(path).refusal(); };
  EXPECT_EQ(refusal(folder.path() / "none").kind, RefusalKind::Missing);
  EXPECT_THAT(to_text(refusal(folder.path() / "none")), HasSubstr("/none: the file cannot be opened: No such file"));
  EXPECT_EQ(refusal(folder.path()).reason, "found a folder, expected a regular file");
  EXPECT_EQ(refusal(folder.file("empty", {})).reason, "the file is empty, expected a GGUF file");
  EXPECT_EQ(refusal("/dev/null").reason, "found a device, expected a regular file");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder.path() / "pipe").reason, "found a pipe, expected a regular file");
  const auto closed = folder.file("closed", FileBuilder(0, 0).bytes());
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  if (::geteuid() != 0) {  // root may read all
    EXPECT_THAT(refusal(closed).reason, HasSubstr("cannot be opened: Permission denied"));
  }
}

TEST(CheckpointFiles, RefusalsNameThePath) {
  const TemporaryFolder folder;
  const auto path = folder.file("bad.gguf", FileBuilder(0, 1).bytes());
  EXPECT_EQ(Checkpoint::open(path).refusal().subject, path.string());
}

}  // namespace
}  // namespace tw::gguf
