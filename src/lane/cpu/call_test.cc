#include "lane/cpu/call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace tw::lane::cpu {
namespace {

// `first` writes value i * i of item i after a delay that differs from item to item; `then` sums what lies before each
// of its items (all of it must be there); `last` copies the sums.
struct Data {
  std::vector<uint64_t> squares, sums, copies;
  uint64_t then_items = 1;
  uint32_t slow = 0;  // items = slow modulo 5 take long
  bool whole = true;  // sums are over all squares, else over the item's own
  std::atomic<int> runs{0};
};

Call call_of(Data& data, void (*run)(Data&, Range), uint64_t (*count)(const Data&)) {
  Call call;
  call.args = &data;
  call.kernel = reinterpret_cast<void (*)()>(run);
  call.items = reinterpret_cast<void (*)()>(count);
  call.run = [](const Call& c, Range range, std::byte*) {
    reinterpret_cast<void (*)(Data&, Range)>(c.kernel)(*static_cast<Data*>(c.args), range);
  };
  call.count = [](const Call& c) {
    return reinterpret_cast<uint64_t (*)(const Data&)>(c.items)(*static_cast<const Data*>(c.args));
  };
  return call;
}

void square(Data& data, Range range) {
  for (uint64_t i = range.begin; i < range.end; ++i) {
    if (i % 5 == data.slow) std::this_thread::sleep_for(std::chrono::microseconds(200 + 37 * i));
    data.squares[i] = i * i;
  }
}
void sum(Data& data, Range range) {
  ++data.runs;
  const uint64_t factor = data.then_items / data.squares.size();
  for (uint64_t i = range.begin; i < range.end; ++i) {
    if (!data.whole) {  // the others may not be there yet
      data.sums[i] = data.squares[i / factor];
      continue;
    }
    data.sums[i] = 0;
    for (const uint64_t value : data.squares) data.sums[i] += value;
  }
}
void copy_sums(Data& data, Range range) {
  for (uint64_t i = range.begin; i < range.end; ++i) data.copies[i] = data.sums[i] + i;
}

class Following : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(Following, SeesWhatTheCallWroteWhateverThreadsAreLate) {
  const auto [threads, count, take_turns] = GetParam();
  Pool pool(static_cast<unsigned>(threads));
  for (const Follow follow : {Follow::Last, Follow::Each})
    for (uint32_t slow = 0; slow < 5; ++slow) {
      Data data;
      const auto n = static_cast<uint64_t>(count);
      data.squares.assign(n, 0);
      data.then_items = 2 * n;
      data.sums.assign(2 * n, 0);
      data.copies.assign(2 * n, 0);
      data.slow = slow;
      data.whole = follow == Follow::Last;
      Call call = call_of(data, square, [](const Data& d) { return uint64_t{d.squares.size()}; });
      call.take_turns = take_turns;
      call.follow = follow;
      call.followers.push_back(call_of(data, sum, [](const Data& d) { return d.then_items; }));
      call.followers.push_back(call_of(data, copy_sums, [](const Data& d) { return d.then_items; }));
      Turn turn;
      for (int step = 0; step < 2; ++step) {
        std::fill(data.squares.begin(), data.squares.end(), 0);
        data.runs = 0;
        turn.reset(call);
        pool.run([&](unsigned thread) { run_call(call, turn, nullptr, thread, pool.threads()); });
        uint64_t total = 0;
        for (uint64_t i = 0; i < n; ++i) total += i * i;
        for (uint64_t i = 0; i < 2 * n; ++i) {
          const uint64_t want = (data.whole ? total : (i / 2) * (i / 2)) + i;
          ASSERT_EQ(data.copies[i], want) << "item " << i << ", slow " << slow;
        }
        ASSERT_EQ(data.runs, follow == Follow::Last ? 1 : count);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Threads, Following,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5), ::testing::Values(1, 2, 7, 40),
                                            ::testing::Bool()));

TEST(Following, ASoloCallAndItsFollowersRunOnTheLastThread) {
  Pool pool(3);
  struct Solo {
    unsigned last = 2;
    std::atomic<int> items{0}, elsewhere{0};
  } data;
  static thread_local unsigned here = 0;
  Call call;
  call.args = &data;
  call.count = [](const Call&) { return uint64_t{5}; };
  call.run = [](const Call& c, Range range, std::byte*) {
    auto& solo = *static_cast<Solo*>(c.args);
    solo.items += static_cast<int>(range.end - range.begin);
    solo.elsewhere += here == solo.last ? 0 : 1;
  };
  for (const bool take_turns : {false, true}) {
    call.take_turns = take_turns;
    call.solo = true;
    call.followers = {call};
    Turn turn;
    turn.reset(call);
    data.items = 0;
    pool.run([&](unsigned thread) {
      here = thread;
      run_call(call, turn, nullptr, thread, pool.threads());
    });
    EXPECT_EQ(data.items, 10);
    EXPECT_EQ(data.elsewhere, 0);
    call.followers.clear();
  }
}

TEST(Following, RunsOnceAfterACallWithoutItems) {
  Data data;
  data.sums.assign(3, 9);
  data.then_items = 3;
  Call call = call_of(data, square, [](const Data&) { return uint64_t{0}; });
  call.followers.push_back(call_of(
      data, [](Data& d, Range range) { d.runs += static_cast<int>(range.end - range.begin); },
      [](const Data& d) { return d.then_items; }));
  Pool pool(3);
  Turn turn;
  turn.reset(call);
  pool.run([&](unsigned thread) { run_call(call, turn, nullptr, thread, pool.threads()); });
  EXPECT_EQ(data.runs, 3);
}

}  // namespace
}  // namespace tw::lane::cpu
