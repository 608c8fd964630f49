#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "gguf/file_builder.h"
#include "gguf/sample_files.h"
#include "gguf/temporary_folder.h"

namespace tw::gguf {
namespace {

using ::testing::HasSubstr;

class WriterFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& item : std::filesystem::directory_iterator(folder_)) names.push_back(item.path().filename());
    return names;
  }
  const TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
};

TensorSource no_tensors() {
  return [](size_t) -> Result<std::span<const std::byte>> { return std::span<const std::byte>(); };
}

std::vector<std::byte> written(const SampleFile& sample) { return write_bytes(sample.spec, source_of(sample)).value(); }

Refusal refused(const FileSpec& spec) {
  const auto bytes = write_bytes(spec, no_tensors());
  return bytes ? refuse(RefusalKind::Usage, "", "nothing was refused") : bytes.refusal();
}

void expect_equal(const Checkpoint& checkpoint, const SampleFile& sample) {
  std::vector<std::pair<std::string, Value>> metadata = sample.spec.metadata;
  if (sample.spec.alignment != 32 &&
      !std::ranges::count(metadata, "general.alignment", &decltype(metadata)::value_type::first))
    metadata.emplace_back("general.alignment", value_u32(static_cast<uint32_t>(sample.spec.alignment)));
  ASSERT_EQ(checkpoint.entries().size(), metadata.size());
  for (size_t i = 0; i < metadata.size(); ++i) {
    EXPECT_EQ(checkpoint.entries()[i].key, metadata[i].first);
    EXPECT_EQ(checkpoint.entries()[i].value, metadata[i].second) << metadata[i].first;
  }
  ASSERT_EQ(checkpoint.tensors().size(), sample.spec.tensors.size());
  for (size_t i = 0; i < sample.tensors.size(); ++i) {
    const TensorInfo& tensor = checkpoint.tensors()[i];
    EXPECT_EQ(tensor.name, sample.spec.tensors[i].name);
    EXPECT_EQ(tensor.format, sample.spec.tensors[i].format);
    EXPECT_EQ(tensor.shape, sample.spec.tensors[i].shape);
    EXPECT_EQ(tensor.offset % sample.spec.alignment, 0u);
    EXPECT_TRUE(std::ranges::equal(checkpoint.bytes(tensor), sample.tensors[i])) << tensor.name;
  }
}

TEST(Writer, WhatIsWrittenReadsBackEqual) {
  for (const SampleFile& sample : sample_files()) {
    SCOPED_TRACE(sample.name);
    const std::vector<std::byte> bytes = written(sample);
    const auto checkpoint = Checkpoint::parse(bytes, sample.name);
    ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
    EXPECT_EQ(checkpoint->version(), 3u);
    EXPECT_EQ(checkpoint->alignment(), sample.spec.alignment);
    EXPECT_EQ(checkpoint->file_bytes(), bytes.size());
    expect_equal(*checkpoint, sample);
  }
}

TEST(Writer, EveryAlignmentReadsBackEqual) {
  SampleFile sample = sample_files().at(3);
  for (uint64_t alignment = 8; alignment <= (1u << 20); alignment *= 2) {
    SCOPED_TRACE(alignment);
    sample.spec.alignment = alignment;
    const std::vector<std::byte> bytes = written(sample);
    const auto checkpoint = Checkpoint::parse(bytes, "aligned");
    ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
    expect_equal(*checkpoint, sample);
  }
}

TEST(Writer, AnAlignmentThatTheReaderTakesIsWrittenAsItIs) {
  for (const ValueType type : {ValueType::U8, ValueType::I8, ValueType::I32, ValueType::U64}) {
    FileSpec spec;
    const bool is_signed = type == ValueType::I8 || type == ValueType::I32;
    spec.metadata = {{"general.alignment", {type, is_signed ? Scalar(int64_t{64}) : Scalar(uint64_t{64})}}};
    spec.alignment = 64;
    const auto bytes = write_bytes(spec, no_tensors());
    ASSERT_TRUE(bytes.ok()) << to_text(bytes.refusal());
    const auto checkpoint = Checkpoint::parse(*bytes, "aligned").value();
    EXPECT_EQ(checkpoint.alignment(), 64u);
    EXPECT_EQ(checkpoint.find("general.alignment")->value, spec.metadata[0].second);
  }
}

TEST(Writer, TheBytesAreThoseOfTheFormat) {
  FileSpec spec;
  spec.metadata = {{"k", value_u32(7)}, {"l", value_strings({"ab"})}};
  spec.tensors = {{"t", Format::I8, {3}}, {"u", Format::F32, {1, 1}}};
  spec.alignment = 32;
  const std::vector<std::byte> t = {std::byte{1}, std::byte{2}, std::byte{3}};
  const std::vector<std::byte> u = {std::byte{4}, std::byte{5}, std::byte{6}, std::byte{7}};
  const auto bytes =
      write_bytes(spec, [&](size_t i) -> Result<std::span<const std::byte>> { return std::span(i ? u : t); });
  FileBuilder expected(2, 2);
  expected.u32("k", 7).array("l", ValueType::String, 1).text("ab");
  expected.tensor("t", {3}, 24, 0).tensor("u", {1, 1}, 0, 32).pad(32).raw("\1\2\3").pad(32).raw("\4\5\6\7").pad(32);
  EXPECT_EQ(bytes.value(), expected.bytes());
}

TEST_F(WriterFiles, TheFileIsTheBytesAndNothingElseStays) {
  const SampleFile sample = sample_files().back();
  const auto path = folder_ / "model.gguf";
  ASSERT_TRUE(write(path, sample.spec, source_of(sample)).ok());
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << to_text(checkpoint.refusal());
  EXPECT_EQ(checkpoint->label(), path.string());
  EXPECT_EQ(checkpoint->file_bytes(), written(sample).size());
  expect_equal(*checkpoint, sample);
  EXPECT_THAT(listing(), ::testing::ElementsAre("model.gguf"));
}

TEST_F(WriterFiles, AFileReplacesTheOneItIsReadFrom) {
  const SampleFile sample = sample_files().back();
  const auto path = folder_ / "model.gguf";
  ASSERT_TRUE(write(path, sample.spec, source_of(sample)).ok());
  const auto old = Checkpoint::open(path).value();
  ASSERT_TRUE(write(path, sample.spec, [&](size_t i) -> Result<std::span<const std::byte>> {
                return old.bytes(old.tensors()[i]);
              }).ok());
  expect_equal(Checkpoint::open(path).value(), sample);
}

TEST_F(WriterFiles, AFailureLeavesTheOldFileAndNoOther) {
  const SampleFile sample = sample_files().back();
  const auto path = folder_ / "model.gguf";
  std::ofstream(path) << "old";
  const auto failing = [&](size_t i) -> Result<std::span<const std::byte>> {
    if (i == 2) return refuse(RefusalKind::Io, "source", "the source failed");
    return std::span(sample.tensors[i]);
  };
  EXPECT_EQ(write(path, sample.spec, failing).refusal().reason, "the source failed");
  EXPECT_THAT(listing(), ::testing::ElementsAre("model.gguf"));
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
}

TEST_F(WriterFiles, AFolderThatIsNotThereIsRefused) {
  const Refusal refusal = write(folder_ / "none" / "model.gguf", {}, no_tensors()).refusal();
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_THAT(to_text(refusal), HasSubstr("none/model.gguf: the file cannot be written: No such file"));
}

TEST_F(WriterFiles, AFolderInTheWayIsRefused) {
  std::filesystem::create_directories(folder_ / "model.gguf" / "inner");
  const Refusal refusal = write(folder_ / "model.gguf", {}, no_tensors()).refusal();
  EXPECT_EQ(refusal.kind, RefusalKind::Io);
  EXPECT_EQ(refusal.reason, "found a folder, expected a regular file or none");
  EXPECT_THAT(listing(), ::testing::ElementsAre("model.gguf"));
}

TEST_F(WriterFiles, APipeInTheWayStaysOne) {
  const std::filesystem::path path = folder_ / "model.gguf";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(write(path, {}, no_tensors()).refusal().reason, "found a pipe, expected a regular file or none");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_THAT(listing(), ::testing::ElementsAre("model.gguf"));
  EXPECT_EQ(write("", {}, no_tensors()).refusal().kind, RefusalKind::Usage);
}

TEST(Writer, ASourceWithTheWrongNumberOfBytesIsRefused) {
  FileSpec spec;
  spec.tensors = {{"t", Format::F32, {2}}};
  const std::vector<std::byte> bytes(7);
  const auto result = write_bytes(spec, [&](size_t) -> Result<std::span<const std::byte>> { return std::span(bytes); });
  EXPECT_EQ(to_text(result.refusal()), "t: the tensor's source gave 7 bytes, expected 8");
}

struct Unwritable {
  std::string name;
  FileSpec spec;
  RefusalKind kind;
  std::string subject;
  std::string reason;
};

FileSpec with_value(Value value) { return {{{"k", std::move(value)}}, {}, 32}; }
FileSpec with_tensor(TensorSpec tensor) { return {{}, {std::move(tensor)}, 32}; }

std::vector<Unwritable> unwritable() {
  using enum RefusalKind;
  using T = ValueType;
  return {
      {"DuplicateKey",
       {{{"k", value_u32(1)}, {"k", value_u32(1)}}, {}, 32},
       Conflict,
       "k",
       "key 1 has the name of key 0"},
      {"DuplicateTensor",
       {{}, {{"t", Format::F32, {1}}, {"t", Format::F16, {2}}}, 32},
       Conflict,
       "t",
       "tensor 1 has the name of tensor 0"},
      {"EmptyKey", {{{"", value_u32(1)}}, {}, 32}, Malformed, "metadata", "the key \"\" is empty"},
      {"EmptyTensorName", with_tensor({"", Format::F32, {1}}), Malformed, "tensors", "the name \"\" is empty"},
      {"LongTensorName", with_tensor({std::string(256, 'x'), Format::F32, {1}}), Malformed, "tensors",
       "has 256 bytes, expected at most 255"},
      {"NoDimensions", with_tensor({"t", Format::F32, {}}), Malformed, "t", "has 0 dimensions, expected 1 to 4"},
      {"FiveDimensions", with_tensor({"t", Format::F32, {1, 1, 1, 1, 1}}), Malformed, "t",
       "has 5 dimensions, expected 1 to 4"},
      {"ZeroDimension", with_tensor({"t", Format::F32, {4, 0}}), Malformed, "t", "a dimension of the shape 4x0 is 0"},
      {"PartOfABlock", with_tensor({"t", Format::Q4_K, {128, 2}}), Malformed, "t",
       "a row has 128 values, expected whole blocks of 256 (Q4_K)"},
      {"HugeTensor", with_tensor({"t", Format::F32, {uint64_t{1} << 32, uint64_t{1} << 32}}), Malformed, "t",
       "needs more than 2^63-1 bytes"},
      {"AlignmentNoPowerOfTwo",
       {{}, {}, 24},
       Malformed,
       "general.alignment",
       "the alignment is 24, expected a power of two from 8"},
      {"AlignmentOfNothing", {{}, {}, 0}, Malformed, "general.alignment", "the alignment is 0"},
      {"AnotherAlignment",
       {{{"general.alignment", value_u32(64)}}, {}, 32},
       Conflict,
       "general.alignment",
       "the metadata has 64 for it, expected the alignment of the file, 32"},
      {"AlignmentThatIsAString",
       {{{"general.alignment", value_string("32")}}, {}, 32},
       Conflict,
       "general.alignment",
       "the metadata has string for it, expected the alignment of the file, 32"},
      {"NumberTooLarge", with_value({T::U8, Scalar(uint64_t{256})}), Malformed, "k", "256 does not fit the type u8"},
      {"NumberTooSmall", with_value({T::I16, Scalar(int64_t{-32769})}), Malformed, "k",
       "-32769 does not fit the type i16"},
      {"FloatTooLarge", with_value({T::F32, Scalar(1e39)}), Malformed, "k", "does not fit the type f32"},
      {"SignedHeldAsUnsigned", with_value({T::I32, Scalar(uint64_t{1})}), Malformed, "k", "not held as its type i32"},
      {"StringHeldAsNumber", with_value({T::String, Scalar(uint64_t{1})}), Malformed, "k",
       "not held as its type string"},
      {"NumberHeldAsString", with_value({T::U32, Scalar(std::string("1"))}), Malformed, "k",
       "not held as its type u32"},
      {"NumberHeldAsBool", with_value({T::U8, Scalar(true)}), Malformed, "k", "not held as its type u8"},
      {"ArrayHeldByAScalarType", with_value({T::U32, Array{T::U32, std::vector<uint64_t>{1}}}), Malformed, "k",
       "an array is held by a value of type u32"},
      {"ScalarHeldByAnArrayType", with_value({T::Array, Scalar(uint64_t{1})}), Malformed, "k",
       "not held as its type array"},
      {"ArrayOfArrays", with_value({T::Array, Array{T::Array, std::vector<uint64_t>{}}}), Malformed, "k",
       "the items are not held as their type array"},
      {"ItemTooLarge", with_value({T::Array, Array{T::U8, std::vector<uint64_t>{1, 256}}}), Malformed, "k",
       "256 does not fit the type u8"},
      {"ItemsHeldWrongly", with_value({T::Array, Array{T::F32, std::vector<uint64_t>{1}}}), Malformed, "k",
       "the items are not held as their type f32"},
      {"NoItemsHeldWrongly", with_value({T::Array, Array{T::F32, std::vector<std::string>{}}}), Malformed, "k",
       "the items are not held as their type f32"},
  };
}

class UnwritableSpec : public ::testing::TestWithParam<Unwritable> {};

TEST_P(UnwritableSpec, IsRefused) {
  const Refusal refusal = refused(GetParam().spec);
  EXPECT_EQ(refusal.kind, GetParam().kind) << to_text(refusal);
  EXPECT_EQ(refusal.subject, GetParam().subject);
  EXPECT_THAT(refusal.reason, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(Writer, UnwritableSpec, ::testing::ValuesIn(unwritable()),
                         [](const auto& test) { return test.param.name; });

TEST(Writer, AFileOfHolesReadsAsZeros) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "holes.gguf";
  const FileSpec spec{.metadata = {{"general.architecture", value_string("llama")}},
                      .tensors = {{"a", Format::F32, {5}}, {"b", Format::Q8_0, {64, 3}}}};
  const auto written = write_holes(path, spec);
  ASSERT_TRUE(written.ok()) << to_text(written.refusal());
  const auto read = Checkpoint::open(path);
  ASSERT_TRUE(read.ok()) << to_text(read.refusal());
  ASSERT_EQ(read->tensors().size(), 2U);
  for (const TensorInfo& tensor : read->tensors()) {
    EXPECT_THAT(read->bytes(tensor), ::testing::Each(std::byte{0})) << tensor.name;
  }
  // The same layout as a file with its data.
  const auto whole = write_bytes(spec, [&](size_t i) -> Result<std::span<const std::byte>> {
    static const std::vector<std::byte> zeros(64 / 32 * 34 * 3);
    return std::span(zeros).first(i == 0 ? 20 : zeros.size());
  });
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(std::filesystem::file_size(path), whole->size());
}

}  // namespace
}  // namespace tw::gguf
