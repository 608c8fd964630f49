#include "spatial/lower/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/attention_case.h"

namespace tw::spatial::lower {
namespace {

using testing::attention;
using testing::AttentionSetting;
using testing::chunked;
using testing::expect_fault;
using testing::expect_lowers;
using testing::expect_refused;
using testing::full_attention;
using ::testing::HasSubstr;
using testing::sliding;

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

// What every form must do, at widths that choose the form.
std::vector<AttentionSetting> settings(uint64_t key_width, uint64_t cached) {
  const AttentionSetting plain{.key_width = key_width, .cached = cached};
  const auto last = static_cast<int64_t>(cached);
  std::vector<AttentionSetting> all;
  const auto with = [&](auto change) {
    AttentionSetting setting = plain;
    change(setting);
    all.push_back(setting);
  };
  with([](AttentionSetting&) {});
  for (const bool literal : {false, true}) {
    for (const int64_t position : {int64_t{1}, last / 2 + 1, last})
      with([&](AttentionSetting& s) { s.position = position, s.literal = literal; });
    for (const int64_t position : {int64_t{1}, last - 2})
      with([&](AttentionSetting& s) { s.rows = 3, s.position = position, s.literal = literal; });
    for (const graph::Window window : {sliding(2), sliding(5), chunked(3), chunked(4)}) {
      with([&](AttentionSetting& s) { s.position = last, s.literal = literal, s.window = window; });
      with([&](AttentionSetting& s) { s.rows = 2, s.position = last / 2, s.literal = literal, s.window = window; });
    }
  }
  with([](AttentionSetting& s) { s.rows = 3; });
  with([](AttentionSetting& s) { s.rows = 2, s.window = sliding(2); });
  with([](AttentionSetting& s) { s.window = chunked(2); });
  with([](AttentionSetting& s) { s.softcap = 0.7F; });
  with([&](AttentionSetting& s) { s.softcap = 0.7F, s.position = last / 2, s.rows = 2; });
  with([](AttentionSetting& s) { s.value_width = 2 * s.key_width; });
  with([](AttentionSetting& s) { s.heads = 4, s.kv_heads = 2; });
  with([](AttentionSetting& s) { s.heads = 3, s.kv_heads = 3; });
  for (const double sink : {-4.0, 0.0, 6.0}) {
    with([&](AttentionSetting& s) { s.sinks = true, s.sink = sink; });
    with([&](AttentionSetting& s) { s.sinks = true, s.sink = sink, s.rows = 2, s.position = last / 2; });
  }
  return all;
}

TEST(Attention, EverySettingInTheFlashForm) {
  uint64_t seed = 0;
  for (const uint64_t cached : {4, 5, 9})
    for (const AttentionSetting& setting : settings(4, cached)) {
      EXPECT_EQ(expect_lowers(attention(setting, ++seed), testing::t4(), {6}).form, "flash");
      if (HasFailure()) FAIL() << "setting " << seed;
    }
}

TEST(Attention, EverySettingInTheHeadsForm) {
  uint64_t seed = 0;
  for (const uint64_t width : {2, 3})
    for (const AttentionSetting& setting : settings(width, 7)) {
      expect_lowers(attention(setting, ++seed), testing::t4(), {6});
      if (HasFailure()) FAIL() << "setting " << seed;
    }
}

}  // namespace
}  // namespace tw::spatial::lower
