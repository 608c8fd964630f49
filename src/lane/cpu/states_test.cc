#include "lane/cpu/states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tw::lane::cpu {
namespace {

using ::testing::Each;

Buffer state_of(std::string name, uint32_t rows, uint32_t cols) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.rows = rows;
  buffer.cols = cols;
  buffer.fill = Fill::State;
  buffer.plain = true;
  return buffer;
}

// Of sizes that are no whole pages, nor whole cache lines.
Schedule small_states() {
  Schedule schedule;
  schedule.buffers = {state_of("keys", 37, 33), state_of("memory", 5, 7), state_of("values", 1001, 129)};
  return schedule;
}

TEST(States, AreZeroAtFirstAndAfterTheyAreZeroed) {
  for (const uint32_t slots : {1U, 3U}) {
    States states(slots);
    const Schedule schedule = small_states();
    ASSERT_TRUE(states.prepare(schedule).ok());
    for (uint32_t slot = 0; slot < slots; ++slot) {
      ASSERT_THAT(states.bytes(slot), Each(std::byte{0}));
      states.fill(slot, std::byte{0xA5});
    }
    states.zero(slots - 1);
    EXPECT_THAT(states.bytes(slots - 1), Each(std::byte{0})) << slots << " slots";
    for (uint32_t slot = 0; slot + 1 < slots; ++slot)
      EXPECT_THAT(states.bytes(slot), Each(std::byte{0xA5})) << "zeroing another slot touched it";
  }
}

TEST(States, DoNotOverlapAndBeginAtCacheLines) {
  for (const uint32_t slots : {1U, 2U}) {
    States states(slots);
    const Schedule schedule = small_states();
    ASSERT_TRUE(states.prepare(schedule).ok());
    std::vector<std::pair<uintptr_t, uintptr_t>> places;
    for (const Buffer& buffer : schedule.buffers) {
      const States::State& state = states.of(buffer);
      EXPECT_GE(state.bytes, uint64_t{buffer.rows} * buffer.cols * 4);
      const auto at = reinterpret_cast<uintptr_t>(state.data);
      EXPECT_EQ(at % 64, 0u);
      places.emplace_back(at, at + state.bytes * slots);
    }
    std::ranges::sort(places);
    for (size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i].first, places[i - 1].second);
  }
}

TEST(States, OfAnotherFormKeepTheirPlaceAndWhatTheyHold) {
  States states(1);
  const Schedule first = small_states();
  ASSERT_TRUE(states.prepare(first).ok());
  const States::State* keys = &states.of(first.buffers[0]);
  std::byte* const place = keys->data;
  states.fill(0, std::byte{1});
  Schedule second = small_states();
  second.buffers.push_back(state_of("more", 3, 5));
  ASSERT_TRUE(states.prepare(second).ok());
  EXPECT_EQ(&states.of(second.buffers[0]), keys) << "programs keep pointers to it";
  EXPECT_EQ(keys->data, place);
  EXPECT_EQ(*place, std::byte{1});
  states.fill(0, std::byte{2});
  states.zero(0);
  EXPECT_THAT(states.bytes(0), Each(std::byte{0})) << "in every block";
}

// Those of one sequence lie together while all are small; a long cache and several sequences have memory of their own.
TEST(States, LieTogetherWhenOneSequenceHasFew) {
  const auto together = [](uint32_t slots, uint32_t rows) {
    States states(slots);
    Schedule schedule;
    schedule.buffers = {state_of("keys", rows, 1024), state_of("values", rows, 1024)};
    EXPECT_TRUE(states.prepare(schedule).ok());
    EXPECT_EQ(states.of(schedule.buffers[0]).together, states.of(schedule.buffers[1]).together);
    return states.of(schedule.buffers[0]).together;
  };
  EXPECT_TRUE(together(1, 640));
  EXPECT_TRUE(together(1, 1 << 14));  // 128 MiB in all
  EXPECT_FALSE(together(1, (1 << 14) + 1));
  EXPECT_FALSE(together(2, 640));
}

// A block's parts that are given back, and the state that is too long to lie in it.
TEST(States, ApartAreZeroedToo) {
  States states(1);
  Schedule schedule;
  schedule.buffers = {state_of("long", 1 << 15, 1025)};
  ASSERT_TRUE(states.prepare(schedule).ok());
  const States::State& state = states.of(schedule.buffers[0]);
  ASSERT_FALSE(state.together);
  for (const uint64_t at : {uint64_t{0}, uint64_t{5000}, state.bytes - 1}) state.data[at] = std::byte{1};
  states.zero(0);
  for (const uint64_t at : {uint64_t{0}, uint64_t{5000}, state.bytes - 1}) EXPECT_EQ(state.data[at], std::byte{0});
}

}  // namespace
}  // namespace tw::lane::cpu
