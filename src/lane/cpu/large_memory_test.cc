#include "lane/cpu/large_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <utility>

#include "lane/cpu/pack_layout.h"
#include "lane/cpu/program_data.h"

namespace tw::lane::cpu {
namespace {

TEST(LargeMemory, IsZeroedAtTheBoundaryOfAHugePage) {
  for (const uint64_t bytes : {uint64_t{1}, kHugePage, 3 * kHugePage + 5}) {
    LargeMemory memory = LargeMemory::allocate(bytes);
    ASSERT_GE(memory.size(), bytes);
    const uint64_t boundary = bytes >= kHugePage ? kHugePage : kPackAlign;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % boundary, 0U);
    EXPECT_EQ(memory.data()[0], std::byte{0});
    EXPECT_EQ(memory.data()[bytes - 1], std::byte{0});
    memory.data()[bytes - 1] = std::byte{7};
    const LargeMemory moved = std::move(memory);
    EXPECT_EQ(moved.data()[bytes - 1], std::byte{7});
  }
  EXPECT_TRUE(LargeMemory::allocate(0).empty());
  EXPECT_TRUE(LargeMemory::allocate(UINT64_MAX / 2).empty());
}

TEST(Aligned, IsZeroedAndAtTheBoundaryOfAHugePageWhenItFillsOne) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{100}, kHugePage - 64, kHugePage, kHugePage + 1}) {
    const Aligned memory(bytes);
    ASSERT_GE(memory.size(), bytes);
    EXPECT_LT(memory.size(), bytes + 64);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % (bytes >= kHugePage ? kHugePage : 64), 0U);
    EXPECT_THAT(std::span(memory.get(), memory.size()), ::testing::Each(std::byte{0}));
  }
  EXPECT_EQ(Aligned().get(), nullptr);
}

}  // namespace
}  // namespace tw::lane::cpu
