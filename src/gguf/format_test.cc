#include "gguf/format.h"

#include <gtest/gtest.h>

#include <set>

namespace tw::gguf {
namespace {

TEST(FormatTable, EveryFormatIsFoundByItsIdAndItsName) {
  std::set<uint32_t> ids;
  for (const FormatInfo& entry : all_formats()) {
    EXPECT_TRUE(ids.insert(entry.id).second) << entry.name;
    EXPECT_EQ(format_of_id(entry.id), entry.format) << entry.name;
    EXPECT_EQ(format_of_name(entry.name), entry.format) << entry.name;
    EXPECT_EQ(info(entry.format), entry) << entry.name;
    EXPECT_EQ(name(entry.format), entry.name);
  }
  EXPECT_EQ(ids.size(), 32u);
}

TEST(FormatTable, NamesIgnoreCase) {
  EXPECT_EQ(format_of_name("q4_k"), Format::Q4_K);
  EXPECT_EQ(format_of_name("Iq2_xXs"), Format::IQ2_XXS);
}

TEST(FormatTable, RetiredAndUnknownIdsAndNamesAreNotFormats) {
  for (uint32_t id : {4u, 5u, 9u, 31u, 32u, 33u, 36u, 37u, 38u, 41u, 255u, 0xffffffffu})
    EXPECT_EQ(format_of_id(id), std::nullopt) << id;
  for (const char* name : {"", "Q4", "Q4_K_M", "Q4_K ", "F8"}) EXPECT_EQ(format_of_name(name), std::nullopt) << name;
}

TEST(FormatTable, BytesCountWholeBlocks) {
  EXPECT_EQ(bytes_of(Format::F32, 7), 28u);
  EXPECT_EQ(bytes_of(Format::Q4_0, 64), 36u);
  EXPECT_EQ(bytes_of(Format::Q6_K, 512), 420u);
  EXPECT_EQ(bytes_of(Format::NVFP4, 64), 36u);
  EXPECT_EQ(bytes_of(Format::MXFP4, 0), 0u);
  EXPECT_EQ(bytes_of(Format::F64, uint64_t{1} << 60), uint64_t{1} << 63);
}

TEST(FormatTable, PartOfABlockIsABug) { EXPECT_DEATH((void)bytes_of(Format::Q4_K, 255), "255 values"); }

}  // namespace
}  // namespace tw::gguf
