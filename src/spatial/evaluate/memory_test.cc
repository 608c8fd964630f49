#include "spatial/evaluate/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spatial/evaluate/codec.h"

namespace tw::spatial::evaluate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor tensor(std::string name, uint64_t rows, uint64_t cols, Precision dtype, Init init = GivenInit{}) {
  return {std::move(name), TensorRole::Input, rows, cols, dtype, std::move(init)};
}

std::vector<double> held(Precision dtype, const std::vector<double>& values) {
  Memory memory({4, 4});
  EXPECT_TRUE(memory.set(tensor("x", 1, values.size(), dtype), values).ok());
  return *memory.reals("x");
}

TEST(Memory, HoldsValuesInTheirPrecision) {
  EXPECT_THAT(held(Precision::F32, {0.1, 1e40, 16777217}),
              ElementsAre(double{0.1F}, std::numeric_limits<double>::infinity(), 16777216));
  EXPECT_THAT(held(Precision::Bf16, {257, 258, 0.1}), ElementsAre(256, 258, 0.10009765625));
  EXPECT_THAT(held(Precision::F16, {2049, 65520, 0x1p-24}),
              ElementsAre(2048, std::numeric_limits<double>::infinity(), 0x1p-24));
  EXPECT_THAT(held(Precision::Fx16, {1.00390625, 0.001953125, 200, -200, std::nan("")}),
              ElementsAre(1.00390625, 0, 127.99609375, -128, 0));
  EXPECT_THAT(held(Precision::Fx32, {0x1p-16, 40000}), ElementsAre(0x1p-16, 32768 - 0x1p-16));
}

TEST(Memory, HoldsIntegersAndRefusesTheOthers) {
  for (const Precision dtype : {Precision::I8, Precision::I16, Precision::I32, Precision::I64}) {
    Memory memory({4, 4});
    const std::vector<int64_t> ends{-int_max(dtype) - 1, -1, int_max(dtype)};
    ASSERT_TRUE(memory.set(tensor("x", 1, 3, dtype), ends).ok());
    EXPECT_EQ(*memory.integers("x"), ends);
  }
  Memory memory({4, 4});
  const auto wide = memory.set(tensor("x", 1, 2, Precision::I8), std::vector<int64_t>{1, 128});
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.refusal().reason, "element 1 is 128, which i8 does not hold");
  EXPECT_FALSE(memory.set(tensor("x", 1, 2, Precision::I8), std::vector<double>{1, 2}).ok());
}

TEST(Memory, LaysTensorsOutInTiles) {
  Memory memory({2, 3});
  std::vector<int64_t> values(3 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) + 1;
  ASSERT_TRUE(memory.set(tensor("x", 3, 4, Precision::I8), values).ok());
  std::vector<int> codes;
  for (const std::byte code : memory.find("x")->codes) codes.push_back(std::to_integer<int>(code));
  EXPECT_EQ(codes, (std::vector<int>{1, 2,  3,  5, 6, 7, 4,  0, 0, 8, 0, 0,  // tile row 0: columns 0 to 2, and 3
                                     9, 10, 11, 0, 0, 0, 12, 0, 0, 0, 0, 0}));
  EXPECT_EQ(*memory.integers("x"), values);
}

TEST(Memory, StartsFromInits) {
  Memory memory({4, 4});
  ASSERT_TRUE(memory.declare(tensor("half", 1, 2, Precision::Bf16, RealInit{0.5})).ok());
  ASSERT_TRUE(memory.declare(tensor("seven", 1, 2, Precision::I8, IntegerInit{7})).ok());
  ASSERT_TRUE(memory.declare(tensor("table", 1, 2, Precision::I8, integer_values({3, -4}))).ok());
  ASSERT_TRUE(memory.declare(tensor("zero", 1, 2, Precision::F32, ZeroInit{})).ok());
  EXPECT_THAT(*memory.reals("half"), ElementsAre(0.5, 0.5));
  EXPECT_THAT(*memory.integers("seven"), ElementsAre(7, 7));
  EXPECT_THAT(*memory.integers("table"), ElementsAre(3, -4));
  EXPECT_THAT(*memory.reals("zero"), ElementsAre(0, 0));
  ASSERT_TRUE(memory.set(tensor("half", 1, 2, Precision::Bf16), std::vector<double>{1, 2}).ok());
  ASSERT_TRUE(memory.declare(tensor("half", 1, 2, Precision::Bf16, RealInit{0.5})).ok());
  EXPECT_THAT(*memory.reals("half"), ElementsAre(1, 2));  // what is there stays
}

TEST(Memory, RefusesAnotherShapeAndWhatNobodyWrote) {
  Memory memory({4, 4});
  ASSERT_TRUE(memory.declare(tensor("x", 2, 3, Precision::F32)).ok());
  const auto other = memory.declare(tensor("x", 3, 2, Precision::F32));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.refusal().reason, "memory holds it as 2x3 f32, the section declares 3x2 f32");
  EXPECT_THAT(memory.reals("x").refusal().reason, HasSubstr("tile 0 of 1 was never written"));
  EXPECT_FALSE(memory.reals("y").ok());
  EXPECT_FALSE(memory.integers("x").ok());
}

}  // namespace
}  // namespace tw::spatial::evaluate
