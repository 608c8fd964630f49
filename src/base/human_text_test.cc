#include "base/human_text.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(HumanText, BytesInUnitsOf1024) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(1499136), "1.4 MiB");
  EXPECT_EQ(human_bytes(~uint64_t{0}), "16777216.0 TiB");
}

TEST(HumanText, CountsInUnitsOf1000) {
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(3254000), "3.25 M");
}

}  // namespace
}  // namespace tw
