#include "lane/cpu/call.h"

#include <algorithm>

namespace tw::lane::cpu {

namespace {

// A turn takes this part of an even share of what is left: long stretches of memory first, and last ones small enough
// that nobody waits long for the thread that has one.
constexpr uint64_t kShareParts = 4;

// Items [n * i / of, n * (i + 1) / of).
Range share(uint64_t n, uint64_t i, uint64_t of) { return {n * i / of, n * (i + 1) / of}; }

void run_followers(const Call& call, std::byte* scratch) {
  for (const Call& follower : call.followers) follower.run(follower, {0, follower.count(follower)}, scratch);
}

// Items of the call, `count` in all, each with the followers' items that it feeds.
void run_each(const Call& call, Range range, uint64_t count, std::byte* scratch) {
  for (uint64_t i = range.begin; i < range.end; ++i) {
    call.run(call, {i, i + 1}, scratch);
    for (const Call& follower : call.followers) {
      const uint64_t factor = follower.count(follower) / count;
      follower.run(follower, {i * factor, (i + 1) * factor}, scratch);
    }
  }
}

void run_range(const Call& call, Turn& turn, Range range, uint64_t count, std::byte* scratch) {
  if (call.followers.empty()) return call.run(call, range, scratch);
  if (call.follow == Follow::Each) return run_each(call, range, count, scratch);
  call.run(call, range, scratch);
  // Each thread publishes its items by this addition, so the one that completes the count sees all of them.
  const uint64_t items = range.end - range.begin;
  if (turn.ended.fetch_add(items, std::memory_order_acq_rel) + items == count) run_followers(call, scratch);
}

}  // namespace

void Turn::reset(const Call& call) {
  if (call.take_turns) counter.reset();
  if (!call.followers.empty()) ended.store(0, std::memory_order_relaxed);
}

void run_call(const Call& call, Turn& turn, std::byte* scratch, uint32_t thread, uint32_t threads) {
  if (call.solo) {
    if (thread + 1 != threads) return;
    thread = 0, threads = 1;
  }
  const uint64_t count = call.count(call);
  if (count == 0) {  // nobody ends a last item
    if (thread == 0 && call.follow == Follow::Last) run_followers(call, scratch);
    return;
  }
  if (!call.take_turns || threads == 1) {
    const Range range = share(count, thread, threads);
    if (range.begin < range.end) run_range(call, turn, range, count, scratch);
    return;
  }
  const auto next = [&] { return turn.counter.next_of_rest(count, threads * kShareParts, call.together); };
  for (Range range = next(); range.begin < range.end; range = next()) run_range(call, turn, range, count, scratch);
}

}  // namespace tw::lane::cpu
