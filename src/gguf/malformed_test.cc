// One malformed file each: how it is refused, and where.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "gguf/checkpoint.h"
#include "gguf/file_builder.h"

namespace tw::gguf {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using enum RefusalKind;
using T = ValueType;

constexpr uint64_t kMax = UINT64_MAX;
constexpr uint64_t kGiga = uint64_t{1} << 30;

struct Malformation {
  std::string name;
  FileBuilder file;
  RefusalKind kind;
  uint64_t offset;                // where the refusal says the fault is
  std::vector<std::string> says;  // what it holds beside
};

void PrintTo(const Malformation& malformation, std::ostream* out) { *out << malformation.name; }

// A file with one key "k" whose length and text are right; what follows the key starts at byte 33.
FileBuilder one_key() { return FileBuilder(0, 1).text("k"); }
// A file with one array "k" up to its items, which start at byte 49; the length stands at byte 41.
FileBuilder one_array(ValueType item, uint64_t count) { return FileBuilder(0, 1).array("k", item, count); }
FileBuilder with_alignment(uint32_t value) { return FileBuilder(0, 1).u32("general.alignment", value); }
// A file with one tensor "t" of one dimension: its record is bytes 24 to 57, its data starts at byte 64.
FileBuilder one_tensor(uint64_t extent, uint32_t format_id, uint64_t offset) {
  return FileBuilder(1, 0).tensor("t", {extent}, format_id, offset).pad(32);
}
// A file with one tensor "t" of that shape in F32, and 64 bytes of data.
FileBuilder shaped(const std::vector<uint64_t>& shape) {
  return FileBuilder(1, 0).tensor("t", shape, 0).pad(32).zeros(64);
}
FileBuilder named_tensor(std::string_view name) { return FileBuilder(1, 0).tensor(name, {1}, 0).pad(32).zeros(32); }
FileBuilder two_tensors(std::string_view second, uint64_t first_offset, uint64_t second_offset) {
  return FileBuilder(2, 0).tensor("t", {16}, first_offset).tensor(second, {16}, second_offset).pad(32).zeros(128);
}

std::vector<Malformation> headers() {
  const auto magic = [](std::string_view text) { return FileBuilder().raw(text).zeros(64); };
  const auto version = [](uint32_t number) { return FileBuilder(0, 0, number); };
  return {
      {"EmptyFile", FileBuilder(), Malformed, 0, {"ends inside the magic: expected 4 bytes, found 0"}},
      {"ThreeBytes", FileBuilder().raw("GGU"), Malformed, 0, {"expected 4 bytes, found 3"}},
      {"WrongMagic", magic("GGUf"), Malformed, 0, {"found the bytes 47 47 55 66", "expected 47 47 55 46"}},
      {"BigEndianMagic", magic("FUGG"), Unsupported, 0, {"big-endian", "expected a little-endian GGUF file"}},
      {"GgmlFile", magic("lmgg"), Unsupported, 0, {"a GGML file"}},
      {"GgmfFile", magic("fmgg"), Unsupported, 0, {"a GGMF file"}},
      {"GgjtFile", magic("tjgg"), Unsupported, 0, {"a GGJT file"}},
      {"ZipArchive", magic("PK\x03\x04"), Unsupported, 0, {"a zip archive"}},
      {"GitLfsPointer", magic("version https://git-lfs"), Unsupported, 0, {"Git LFS"}},
      {"EndsInsideVersion", FileBuilder().raw("GGUF\x03"), Malformed, 4, {"inside the version", "found 1"}},
      {"Version0", version(0), Unsupported, 4, {"found GGUF version 0, expected 2 or 3"}},
      {"Version1", version(1), Unsupported, 4, {"found GGUF version 1, expected 2 or 3"}},
      {"Version4", version(4), Unsupported, 4, {"found GGUF version 4, expected 2 or 3"}},
      {"VersionOfAllBits", version(UINT32_MAX), Unsupported, 4, {"version 4294967295"}},
      {"BigEndianVersion2", version(0x02000000), Unsupported, 4, {"a big-endian GGUF file (version 2)"}},
      {"BigEndianVersion3", version(0x03000000), Unsupported, 4, {"a big-endian GGUF file (version 3)"}},
      {"EndsInsideTensorCount", FileBuilder().raw("GGUF").number(3u).zeros(7), Malformed, 8, {"the number of tensors"}},
      {"EndsInsideKeyCount", FileBuilder().raw("GGUF").number(3u).zeros(15), Malformed, 16, {"the number of keys"}},
      {"TensorsOfTerabytes",
       FileBuilder(1024 * kGiga, 0).zeros(136),
       Malformed,
       8,
       {"1099511627776 tensors", "136 bytes left"}},
      {"TensorsOfAllBits", FileBuilder(kMax, 0).zeros(136), Malformed, 8, {"18446744073709551615 tensors"}},
      {"OneTensorTooMany", FileBuilder(5, 0).zeros(5 * 33 - 1), Malformed, 8, {"5 tensors", "164 bytes left"}},
      {"KeysOfTerabytes",
       FileBuilder(0, 1024 * kGiga).zeros(136),
       Malformed,
       16,
       {"1099511627776 keys", "136 bytes left"}},
      {"KeysOfAllBits", FileBuilder(0, kMax).zeros(136), Malformed, 16, {"18446744073709551615 keys"}},
      {"OneKeyTooMany", FileBuilder(0, 2).zeros(27), Malformed, 16, {"2 keys", "27 bytes left"}},
      {"KeyCountWhoseSizeOverflows",
       FileBuilder(0, kMax / 14 + 1).zeros(136),
       Malformed,
       16,
       {"keys of at least 14 bytes"}},
  };
}

std::vector<Malformation> keys() {
  const auto key = [](std::string_view text) { return FileBuilder(0, 1).u32(text, 1); };
  return {
      {"KeyPastTheEnd",
       FileBuilder(0, 1).number<uint64_t>(7).zeros(6),
       Malformed,
       24,
       {"a key claims 7 bytes, the file has 6 left"}},
      {"KeyOfAllBits",
       FileBuilder(0, 1).number(kMax).zeros(6),
       Malformed,
       24,
       {"a key claims 18446744073709551615 bytes"}},
      {"EmptyKey", key("").zeros(1), Malformed, 24, {"key \"\"", "is empty"}},
      {"KeyTooLong", key(std::string(65536, 'k')), Malformed, 24, {"has 65536 bytes, expected at most 65535"}},
      {"KeyWithNul",
       key(std::string("a\0b", 3)),
       Malformed,
       24,
       {R"("a\x00b")", "control character (0x00) at position 1"}},
      {"KeyWithEscape", key("a\x1b[2J"), Malformed, 24, {R"("a\x1b[2J")", "control character (0x1b)"}},
      {"KeyWithC1Control", key("a\xc2\x85"), Malformed, 24, {R"("a\xc2\x85")", "control character (0x85)"}},
      {"KeyNotUtf8", key("ab\xff"), Malformed, 24, {R"("ab\xff")", "byte 0xff at position 2, expected UTF-8"}},
      {"KeyWithOverlongUtf8", key("\xc0\xaf"), Malformed, 24, {"byte 0xc0 at position 0"}},
      {"KeyWithSurrogate", key("\xed\xa0\x80"), Malformed, 24, {"byte 0xed at position 0"}},
      {"KeyWithCutUtf8", key("a\xe2\x98"), Malformed, 24, {"byte 0xe2 at position 1"}},
      {"KeyPastUnicode", key("\xf4\x90\x80\x80"), Malformed, 24, {"byte 0xf4 at position 0"}},
      {"DuplicateKey",
       FileBuilder(0, 2).u32("k", 1).u32("k", 1),
       Malformed,
       41,
       {"found key \"k\" a second time", "it is at byte 24"}},
      {"DuplicateKeyFarApart",
       FileBuilder(0, 3).u32("k", 1).u32("a", 1).string("k", ""),
       Malformed,
       58,
       {"key \"k\"", "it is at byte 24"}},
      {"EndsBeforeTheNextKey",
       FileBuilder(0, 2).string("kkkkkkkk", "text").zeros(7),
       Malformed,
       56,
       {"inside a key: expected 8 bytes, found 7"}},
  };
}

std::vector<Malformation> values() {
  return {
      {"EndsInsideType",
       FileBuilder(0, 1).text("kkkk").zeros(2),
       Malformed,
       36,
       {"key \"kkkk\"", "inside the type of the value"}},
      {"Type13",
       one_key().number(13u).zeros(8),
       Malformed,
       33,
       {"key \"k\"", "the type of the value is 13, expected 0"}},
      {"TypeOfAllBits", one_key().number(UINT32_MAX).zeros(8), Malformed, 33, {"is 4294967295"}},
      {"EndsInsideNumber", one_key().type(T::U64).zeros(7), Malformed, 37, {"key \"k\"", "expected 8 bytes, found 7"}},
      {"BoolOf2", one_key().type(T::Bool).raw("\2"), Malformed, 37, {"key \"k\"", "a bool is 2, expected 0 or 1"}},
      {"BoolOf255", one_key().type(T::Bool).raw("\xff"), Malformed, 37, {"a bool is 255"}},
      {"StringPastTheEnd",
       one_key().type(T::String).number<uint64_t>(5).raw("four"),
       Malformed,
       37,
       {"key \"k\"", "claims 5 bytes, the file has 4 left"}},
      {"StringOf2To63",
       one_key().type(T::String).number(uint64_t{1} << 63),
       Malformed,
       37,
       {"claims 9223372036854775808 bytes"}},
      {"StringOfAllBits",
       one_key().type(T::String).number(kMax).raw("text"),
       Malformed,
       37,
       {"claims 18446744073709551615 bytes"}},
      {"EndsInsideStringLength", one_key().type(T::String).zeros(7), Malformed, 37, {"expected 8 bytes, found 7"}},
  };
}

std::vector<Malformation> arrays() {
  FileBuilder gigabytes = one_array(T::String, 1024 * kGiga);
  gigabytes.zeros(160 - gigabytes.size());
  return {
      {"EndsInsideItemType",
       one_key().type(T::Array).zeros(3),
       Malformed,
       37,
       {"key \"k\"", "the type of the array's items"}},
      {"EndsInsideArrayLength",
       one_key().type(T::Array).type(T::U8).zeros(7),
       Malformed,
       41,
       {"the length of an array"}},
      {"ItemType13",
       one_key().type(T::Array).number(13u).zeros(16),
       Malformed,
       37,
       {"the type of the array's items is 13"}},
      {"ArrayOfArrays", one_array(T::Array, 1).zeros(32), Unsupported, 37, {"key \"k\"", "found an array of arrays"}},
      {"SmallFileAsksForTerabytes",
       gigabytes,
       Malformed,
       41,
       {"key \"k\"", "1099511627776 strings", "it has 111 bytes left"}},
      {"BytesOf2To63",
       one_array(T::U8, uint64_t{1} << 63).zeros(64),
       Malformed,
       49,
       {"9223372036854775808 numbers (u8)"}},
      {"NumbersWhoseSizeIs2To64",
       one_array(T::U64, uint64_t{1} << 61).zeros(64),
       Malformed,
       49,
       {"2305843009213693952 numbers (u64)"}},
      {"NumbersWhoseSizeWrapsToSmall",
       one_array(T::F32, (uint64_t{1} << 62) + 1).zeros(64),
       Malformed,
       49,
       {"numbers (f32) of at least 4 bytes"}},
      {"StringsWhoseSizeWrapsToSmall",
       one_array(T::String, (uint64_t{1} << 61) + 1).zeros(64),
       Malformed,
       41,
       {"strings of at least 8 bytes"}},
      {"BoolsOfAllBits", one_array(T::Bool, kMax).zeros(64), Malformed, 49, {"18446744073709551615 bools"}},
      {"OneNumberTooMany",
       one_array(T::I16, 33).zeros(65),
       Malformed,
       49,
       {"33 numbers (i16)", "it has 65 bytes left"}},
      {"OneStringTooMany",
       one_array(T::String, 3).text("").text("").zeros(7),
       Malformed,
       41,
       {"3 strings", "it has 23 bytes left"}},
      {"ItemPastTheEnd",
       one_array(T::String, 2).text("ab").number<uint64_t>(9).zeros(8),
       Malformed,
       59,
       {"key \"k\"", "claims 9 bytes, the file has 8 left"}},
      {"ItemOfAllBits",
       one_array(T::String, 2).text("ab").number(kMax).zeros(8),
       Malformed,
       59,
       {"claims 18446744073709551615 bytes"}},
      {"BoolItemOf2", one_array(T::Bool, 3).raw(std::string("\0\1\2", 3)), Malformed, 51, {"key \"k\"", "a bool is 2"}},
  };
}

std::vector<Malformation> alignments() {
  const std::string expected = "expected a power of two from 8 to 1048576";
  return {
      {"AlignmentOf0", with_alignment(0), Malformed, 24, {"general.alignment is 0", expected}},
      {"AlignmentOf4", with_alignment(4), Malformed, 24, {"general.alignment is 4", expected}},
      {"AlignmentOf24", with_alignment(24), Malformed, 24, {"general.alignment is 24", expected}},
      {"AlignmentOf33", with_alignment(33), Malformed, 24, {"general.alignment is 33", expected}},
      {"AlignmentOf2To21", with_alignment(1u << 21), Malformed, 24, {"general.alignment is 2097152", expected}},
      {"AlignmentOfAllBits", with_alignment(UINT32_MAX), Malformed, 24, {"general.alignment is 4294967295", expected}},
      {"AlignmentOf2To63",
       FileBuilder(0, 1).key("general.alignment", T::U64).number(uint64_t{1} << 63),
       Malformed,
       24,
       {"is 9223372036854775808", expected}},
  };
}

std::vector<Malformation> records() {
  return {
      {"NamePastTheEnd",
       FileBuilder(1, 0).number<uint64_t>(26).zeros(25),
       Malformed,
       24,
       {"name claims 26 bytes, the file has 25 left"}},
      {"NameOfAllBits",
       FileBuilder(1, 0).number(kMax).zeros(25),
       Malformed,
       24,
       {"name claims 18446744073709551615 bytes"}},
      {"EmptyName", named_tensor("").zeros(8), Malformed, 24, {"tensor \"\"", "the name is empty"}},
      {"NameTooLong",
       named_tensor(std::string(256, 't')),
       Malformed,
       24,
       {"(256 bytes)", "has 256 bytes, expected at most 255"}},
      {"NameWithNul",
       named_tensor(std::string("t\0", 2)),
       Malformed,
       24,
       {R"(tensor "t\x00")", "control character (0x00)"}},
      {"NameNotUtf8", named_tensor("t\x80"), Malformed, 24, {R"(tensor "t\x80")", "expected UTF-8"}},
      {"DuplicateName",
       two_tensors("t", 0, 64),
       Malformed,
       57,
       {"found tensor \"t\" a second time", "it is at byte 24"}},
      {"DuplicateNameFarApart",
       FileBuilder(3, 0).tensor("t", {1}, 0).tensor("a", {1}, 32).tensor("t", {1}, 64).pad(32).zeros(96),
       Malformed,
       90,
       {"tensor \"t\"", "it is at byte 24"}},
      {"EndsInsideOffset",
       FileBuilder(1, 0).text("tt").number(1u).number<uint64_t>(1).number(0u).zeros(7),
       Malformed,
       50,
       {"tensor \"tt\"", "inside the offset of the tensor: expected 8 bytes, found 7"}},
      {"EndsBeforeTheNextRecord",
       FileBuilder(2, 0).tensor("tttttttttttttttttttttttttttttttttttt", {1}, 0),
       Malformed,
       92,
       {"inside a tensor's name"}},
      {"NoDimensions",
       FileBuilder(1, 0).tensor("t", {}, 0).zeros(64),
       Malformed,
       33,
       {"tensor \"t\"", "has 0 dimensions, expected 1 to 4"}},
      {"FiveDimensions", shaped({1, 1, 1, 1, 1}), Malformed, 33, {"tensor \"t\"", "has 5 dimensions, expected 1 to 4"}},
      {"DimensionsOfAllBits",
       FileBuilder(1, 0).text("t").number(UINT32_MAX).zeros(64),
       Malformed,
       33,
       {"has 4294967295 dimensions"}},
      {"ZeroDimension", shaped({0}), Malformed, 33, {"tensor \"t\"", "a dimension of the shape 0 is 0"}},
      {"ZeroLastDimension", shaped({4, 2, 0}), Malformed, 33, {"a dimension of the shape 4x2x0 is 0"}},
      {"ZeroDimensionAfterOverflow", shaped({kMax, kMax, 0}), Malformed, 33, {"is 0, expected at least 1"}},
      {"DimensionOfAllBits", shaped({kMax}), Malformed, 33, {"tensor \"t\"", "needs more than 2^63-1 bytes"}},
      {"ProductOf2To64",
       shaped({uint64_t{1} << 32, uint64_t{1} << 32}),
       Malformed,
       33,
       {"4294967296x4294967296 of F32"}},
      {"ProductThatWrapsToSmall",
       shaped({(uint64_t{1} << 32) + 1, uint64_t{1} << 32, 2}),
       Malformed,
       33,
       {"needs more than"}},
      {"BytesThatWrapToSmall", shaped({(uint64_t{1} << 62) + 1}), Malformed, 33, {"needs more than 2^63-1 bytes"}},
      {"PartOfABlock",
       one_tensor(33, 8, 0).zeros(64),
       Malformed,
       33,
       {"tensor \"t\"", "a row has 33 values, expected whole blocks of 32 (Q8_0)"}},
      {"RetiredFormat",
       one_tensor(32, 4, 0).zeros(64),
       Unsupported,
       45,
       {"tensor \"t\"", "the tensor's type is 4, expected"}},
      {"FormatPastTheLast",
       one_tensor(32, 99, 0).zeros(64),
       Unsupported,
       45,
       {"tensor \"t\"", "the tensor's type is 99"}},
      {"FormatOfAllBits",
       one_tensor(32, UINT32_MAX, 0).zeros(64),
       Unsupported,
       45,
       {"the tensor's type is 4294967295"}},
  };
}

std::vector<Malformation> placements() {
  return {
      {"MisalignedOffset",
       one_tensor(1, 0, 4).zeros(64),
       Malformed,
       24,
       {"tensor \"t\"", "offset is 4, expected a multiple of the alignment 32"}},
      {"MisalignedForItsAlignment",
       FileBuilder(1, 1).u32("general.alignment", 64).tensor("t", {1}, 32).pad(64).zeros(64),
       Malformed,
       57,
       {"offset is 32, expected a multiple of the alignment 64"}},
      {"NoData",
       FileBuilder(1, 0).tensor("t", {1}, 0),
       Malformed,
       24,
       {"tensor \"t\"", "4 bytes", "starts at byte 64", "57 bytes in all"}},
      {"DataOneByteShort",
       one_tensor(16, 0, 0).zeros(63),
       Malformed,
       24,
       {"tensor \"t\"", "64 bytes start 0 bytes into", "127 bytes in all"}},
      {"OffsetPastTheEnd",
       one_tensor(1, 0, 96).zeros(96),
       Malformed,
       24,
       {"tensor \"t\"", "4 bytes start 96 bytes into", "160 bytes in all"}},
      {"OffsetThatOverflows",
       one_tensor(1, 0, kMax - 31).zeros(64),
       Malformed,
       24,
       {"tensor \"t\"", "18446744073709551584 bytes into"}},
      {"EndThatOverflows",
       one_tensor(uint64_t{1} << 60, 0, uint64_t{3} << 62).zeros(64),
       Malformed,
       24,
       {"4611686018427387904 bytes start"}},
      {"TensorOfExabytes",
       one_tensor(uint64_t{1} << 60, 0, 0).zeros(64),
       Malformed,
       24,
       {"4611686018427387904 bytes start 0 bytes"}},
      {"SamePlace",
       two_tensors("u", 0, 0),
       Malformed,
       57,
       {"tensor \"u\"", "not to overlap tensor \"t\" (bytes 96 to 160)"}},
      {"PartlyOverlapping",
       two_tensors("u", 0, 32),
       Malformed,
       57,
       {"tensor \"u\"", "starts at byte 128", "(bytes 96 to 160)"}},
      {"OverlappingOutOfOrder",
       two_tensors("u", 32, 0),
       Malformed,
       24,
       {"tensor \"t\"", "not to overlap tensor \"u\" (bytes 96 to 160)"}},
  };
}

class MalformedFile : public ::testing::TestWithParam<Malformation> {};

TEST_P(MalformedFile, IsRefused) {
  const Malformation& malformed = GetParam();
  const auto checkpoint = Checkpoint::parse(malformed.file.bytes(), "bad.gguf");
  ASSERT_FALSE(checkpoint.ok());
  const Refusal& refusal = checkpoint.refusal();
  EXPECT_EQ(refusal.kind, malformed.kind) << to_text(refusal);
  EXPECT_EQ(refusal.subject, "bad.gguf");
  EXPECT_THAT(refusal.reason, StartsWith("at byte " + std::to_string(malformed.offset)));
  EXPECT_FALSE(std::isdigit(refusal.reason.at(8 + std::to_string(malformed.offset).size()))) << refusal.reason;
  for (const std::string& text : malformed.says) EXPECT_THAT(refusal.reason, HasSubstr(text));
}

std::string name_of(const ::testing::TestParamInfo<Malformation>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(Header, MalformedFile, ::testing::ValuesIn(headers()), name_of);
INSTANTIATE_TEST_SUITE_P(Keys, MalformedFile, ::testing::ValuesIn(keys()), name_of);
INSTANTIATE_TEST_SUITE_P(Values, MalformedFile, ::testing::ValuesIn(values()), name_of);
INSTANTIATE_TEST_SUITE_P(Arrays, MalformedFile, ::testing::ValuesIn(arrays()), name_of);
INSTANTIATE_TEST_SUITE_P(Alignment, MalformedFile, ::testing::ValuesIn(alignments()), name_of);
INSTANTIATE_TEST_SUITE_P(Records, MalformedFile, ::testing::ValuesIn(records()), name_of);
INSTANTIATE_TEST_SUITE_P(Placement, MalformedFile, ::testing::ValuesIn(placements()), name_of);

}  // namespace
}  // namespace tw::gguf
