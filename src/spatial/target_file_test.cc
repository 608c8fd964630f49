#include "spatial/target_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::spatial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kGood = R"(
name = "mine"
description = "A target by hand"
tile = [2, 3]
sites = [4, 5]
local_bytes = 4096
accumulator_tiles = 8
precisions = ["i8", "i32", "bf16", "f32"]
matmul_operands = ["bf16"]
capabilities = ["exp", "recip"]
[real]
element = "bf16"
accumulator = "f32"
)";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TargetFile, ReadsEveryKey) {
  const Result<Target> read = parse_target(kGood, "mine.toml");
  ASSERT_TRUE(read.ok()) << to_text(read.refusal());
  Target want;
  want.name = "mine";
  want.description = "A target by hand";
  want.tile = {2, 3};
  want.site_rows = 4;
  want.site_cols = 5;
  want.local_bytes = 4096;
  want.accumulator_tiles = 8;
  want.real_element = Precision::Bf16;
  want.real_accumulator = Precision::F32;
  want.precisions = {Precision::I8, Precision::I32, Precision::Bf16, Precision::F32};
  want.matmul_operands = {Precision::Bf16};
  want.capabilities = {Capability::Exp, Capability::Recip};
  EXPECT_EQ(*read, want);
}

struct TargetFault {
  std::string_view from, to, message;
};

TEST(TargetFile, AFaultNamesFileKeyFoundAndExpected) {
  const TargetFault faults[] = {
      {"tile = [2, 3]", "tile = [2]", "mine.toml: key tile is a list, expected two whole numbers, [rows, cols]"},
      {"tile = [2, 3]", "tile = [0, 3]", "mine.toml: key tile is 0, expected 1 to 1024"},
      {"tile = [2, 3]", "tiles = [2, 3]", "mine.toml: key tile is missing, expected two whole numbers"},
      {"local_bytes = 4096", "local_bytes = \"4 KB\"",
       "mine.toml: key local_bytes is a string, expected a whole number"},
      {"local_bytes = 4096", "local_bytes = -1", "mine.toml: key local_bytes is -1, expected 0 to"},
      {"\"bf16\", \"f32\"]", "\"bf17\", \"f32\"]", "key precisions has the entry \"bf17\", expected one of i8, i16"},
      {"[\"exp\"", "[\"exq\"", "key capabilities has the entry \"exq\", expected one of indirect_tiles"},
      {"element = \"bf16\"", "element = \"i8\"", "key real.element is i8, expected a real precision"},
      {"element = \"bf16\"", "element = \"f16\"", "key real.element is f16, which precisions does not list"},
      {"accumulator = \"f32\"", "", "key real.accumulator is missing, expected a string"},
      {"[real]", "[real]\nwidth = 3", "key real.width is no key of a target"},
      {"accumulator_tiles = 8", "accumulator_tiles = 8\nlocal_byte = 1",
       "key local_byte is no key of a target. Did you mean local_bytes?"},
      {"sites = [4, 5]", "sites = [4, 5", "mine.toml: is no TOML"},
      {"tile = [2, 3]", "tile = [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "brackets open at once"},
  };
  for (const TargetFault& fault : faults) {
    const Result<Target> read = parse_target(with(fault.from, fault.to), "mine.toml");
    ASSERT_FALSE(read.ok()) << fault.to;
    EXPECT_THAT(to_text(read.refusal()), HasSubstr(std::string(fault.message)));
  }
  EXPECT_EQ(parse_target(std::string(70000, ' '), "big").refusal().kind, RefusalKind::TooLarge);
}

TEST(TargetFile, EveryShippedTargetReadsUnderItsOwnName) {
  EXPECT_THAT(target_names(), ElementsAre("fabric", "rdu", "scalar", "tensix", "toy_square", "toy_tall"));
  for (const std::string& name : target_names()) {
    const Result<Target> target = find_target(name);
    ASSERT_TRUE(target.ok()) << to_text(target.refusal());
    EXPECT_EQ(target->name, name);
  }
  EXPECT_EQ(find_target("tensix")->tile, (TileShape{32, 32}));
  EXPECT_FALSE(find_target("toy_tall")->tile.square());
  EXPECT_EQ(find_target("scalar")->tile, (TileShape{1, 1}));
  EXPECT_EQ(find_target("fabric")->real_element, Precision::Fx16);
}

TEST(TargetFile, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(to_text(find_target("tensor").refusal()), HasSubstr("Known are fabric, rdu, scalar, tensix"));
  EXPECT_EQ(find_target("no/such.toml").refusal().kind, RefusalKind::Io);
}

// The figures of the specification for a 32-wide tile and a page of 8.
TEST(Target, BlocksAsFigured) {
  const Target tensix = *find_target("tensix");
  const std::pair<uint64_t, uint64_t> figures[] = {{9, 3},  {10, 5}, {11, 1}, {12, 6},  {13, 1},  {16, 8}, {17, 1},
                                                   {20, 5}, {40, 8}, {64, 8}, {160, 8}, {192, 8}, {288, 8}};
  for (const auto& [tiles, block] : figures) EXPECT_EQ(tensix.block_of(tiles), block) << tiles;
  EXPECT_EQ(tensix.tiles(0), 1U);
  EXPECT_EQ(tensix.tiles(33), 2U);
  EXPECT_FALSE(tensix.wide(256));
  EXPECT_TRUE(tensix.wide(257));
  EXPECT_TRUE(tensix.whole(64));
  EXPECT_FALSE(tensix.whole(65));
}

TEST(Target, AnIndexTakesTheSmallestIntegerThatHoldsIt) {
  const Target toy = *find_target("toy_square");
  EXPECT_EQ(*index_precision(toy, 127, "i"), Precision::I8);
  EXPECT_EQ(*index_precision(toy, 128, "i"), Precision::I16);
  EXPECT_EQ(*index_precision(*find_target("rdu"), 128, "i"), Precision::I32);
  const Result<Precision> none = index_precision(toy, uint64_t{1} << 31, "i");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.refusal().reason, HasSubstr("indices up to 2147483648, an i64 on target toy_square"));
  EXPECT_EQ(*accumulator_for(*find_target("fabric"), Precision::I16, "y"), Precision::I32);
  EXPECT_EQ(*accumulator_for(*find_target("fabric"), Precision::Fx16, "y"), Precision::Fx32);
}

}  // namespace
}  // namespace tw::spatial
