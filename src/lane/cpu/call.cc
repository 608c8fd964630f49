#include "lane/cpu/call.h"

#include <algorithm>

namespace tw::lane::cpu {

namespace {

// Turns a thread takes of a call that is shared out as threads come free: the last one that is under way when the
// others have ended is what they wait for, so it should be a small part.
constexpr uint64_t kTurns = 16;

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
  const uint64_t turns = std::min(count, uint64_t{threads} * kTurns);
  for (Range i = turn.counter.next(turns, 1); i.begin < i.end; i = turn.counter.next(turns, 1)) {
    run_range(call, turn, share(count, i.begin, turns), count, scratch);
  }
}

}  // namespace tw::lane::cpu
