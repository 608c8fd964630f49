#include "spatial/lower/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

TEST(AttentionLayout, DenseExactlyWhereWholeTilesAreSharedEvenlyOnASquareTile) {
  const Target target = testing::t32();
  EXPECT_TRUE(attention_reads_dense(target, 16, 8, 128, 128));
  EXPECT_TRUE(attention_reads_dense(target, 16, 1, 576, 512));
  EXPECT_FALSE(attention_reads_dense(target, 4, 2, 16, 32));
  EXPECT_FALSE(attention_reads_dense(target, 4, 2, 32, 16));
  EXPECT_FALSE(attention_reads_dense(target, 4, 3, 32, 32));
  EXPECT_FALSE(attention_reads_dense(target, 4, 0, 32, 32));
  EXPECT_FALSE(attention_reads_dense(target, 4, 2, 0, 32));
  EXPECT_TRUE(attention_reads_dense(testing::t1(), 2, 1, 3, 5));
  EXPECT_FALSE(attention_reads_dense(testing::tall(), 2, 1, 4, 4));
  EXPECT_TRUE(full_attention_reads_dense(target, 32, 64));
  EXPECT_FALSE(full_attention_reads_dense(target, 32, 8));
  EXPECT_FALSE(full_attention_reads_dense(testing::tall(), 4, 4));
}

}  // namespace
}  // namespace tw::spatial::lower
