#include "lane/cpu/pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <numeric>

namespace tw::lane::cpu {
namespace {

TEST(Pool, EveryThreadRunsOnceARun) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    Pool pool(threads);
    std::vector<int> count(threads, 0);
    for (int round = 0; round < 200; ++round) pool.run([&](unsigned thread) { ++count[thread]; });
    EXPECT_EQ(count, std::vector<int>(threads, 200));
  }
}

TEST(Pool, AParkedPoolWakesUp) {
  Pool pool(3);
  std::atomic<int> calls{0};
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pool.run([&](unsigned) { ++calls; });
  }
  EXPECT_EQ(calls, 15);
}

TEST(Pool, WhatWasWrittenBeforeABarrierIsReadAfterIt) {
  for (const unsigned threads : {1u, 2u, 3u, 7u}) {
    Pool pool(threads);
    std::vector<int> value(threads, 0);
    std::atomic<int> wrong{0};
    pool.run([&](unsigned thread) {
      for (int step = 1; step <= 100; ++step) {
        value[thread] = step;
        pool.barrier();
        for (const int v : value) wrong += v != step;
        pool.barrier();
      }
    });
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(Pool, ItemsAreHandedOutOnce) {
  Pool pool(4);
  ItemCounter counter;
  std::vector<std::atomic<int>> taken(1003);
  pool.run([&](unsigned) {
    for (Range range = counter.next(taken.size(), 7); range.begin < range.end; range = counter.next(taken.size(), 7))
      for (uint64_t i = range.begin; i < range.end; ++i) ++taken[i];
  });
  for (const auto& count : taken) EXPECT_EQ(count, 1);
}

TEST(Pool, PartsOfTheRestAreHandedOutOnceAndShrink) {
  Pool pool(4);
  for (const uint64_t count : {1, 7, 8, 1003}) {
    ItemCounter counter;
    std::vector<std::atomic<int>> taken(count);
    std::atomic<uint64_t> last_size{count}, grown{0};
    pool.run([&](unsigned) {
      uint64_t before = count;
      for (Range range = counter.next_of_rest(count, 8); range.begin < range.end;
           range = counter.next_of_rest(count, 8)) {
        grown += range.end - range.begin > before ? 1 : 0;
        before = range.end - range.begin;
        if (range.end == count) last_size = before;
        for (uint64_t i = range.begin; i < range.end; ++i) ++taken[i];
      }
    });
    for (const auto& times : taken) EXPECT_EQ(times, 1);
    EXPECT_EQ(last_size, 1U);
    EXPECT_EQ(grown, 0U);
  }
}

TEST(Pool, PartsOfTheRestAreWholeNumbersOfItemsThatBelongTogether) {
  for (const uint64_t count : {1, 3, 4, 64, 1003}) {
    ItemCounter counter;
    uint64_t end = 0;
    for (Range range = counter.next_of_rest(count, 8, 4); range.begin < range.end;
         range = counter.next_of_rest(count, 8, 4)) {
      EXPECT_EQ(range.begin, end);
      end = range.end;
      EXPECT_TRUE(end == count || (range.end - range.begin) % 4 == 0) << count;
    }
    EXPECT_EQ(end, count);
  }
}

TEST(Pool, DenormalsAreKeptOnEveryThread) {
  Pool pool(3);
  std::vector<float> result(3, 0);
  const volatile float small = std::numeric_limits<float>::min();
  pool.run([&](unsigned thread) { result[thread] = small * 0.5f; });
  EXPECT_EQ(result, std::vector<float>(3, 0x1p-127f));
}

TEST(Pool, ManyPoolsStartAndEndCleanly) {
  for (int i = 0; i < 30; ++i) {
    Pool pool(1 + static_cast<unsigned>(i) % 4);
    if (i % 2 == 0) pool.run([](unsigned) {});
  }
}

}  // namespace
}  // namespace tw::lane::cpu
