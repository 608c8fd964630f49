#include "base/near_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tw {
namespace {

TEST(NearName, IsTheOneWithTheFewestEdits) {
  const std::vector<std::string_view> known{"matmul", "head_matmul", "row_norm", "rope"};
  EXPECT_EQ(near_name("matmull", known), "matmul");
  EXPECT_EQ(near_name("mtamul", known), "matmul");
  EXPECT_EQ(near_name("rownorm", known), "row_norm");
  EXPECT_EQ(near_name("rpoe", known), "rope");
}

TEST(NearName, IsAbsentWhenNoneIsLike) {
  const std::vector<std::string_view> known{"matmul", "rope", std::string_view()};
  EXPECT_EQ(near_name("attention", known), std::nullopt);
  EXPECT_EQ(near_name("x", known), std::nullopt);
  EXPECT_EQ(near_name("", known), std::nullopt);
  EXPECT_EQ(near_name(std::string(65, 'm'), known), std::nullopt);
}

}  // namespace
}  // namespace tw
