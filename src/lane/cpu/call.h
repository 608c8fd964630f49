#pragma once

// One kernel call of a program, what follows on it, and how threads share it out. Running neither allocates nor locks.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lane/cpu/pool.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// When the followers of a call run, without a wait of all threads.
enum class Follow : uint8_t {
  Last,  // the thread that ends the call's last item runs all their items
  Each,  // the thread that ended item i goes on with its share of theirs: items [i * f, (i + 1) * f), f to one
};

// One kernel over all its items. `barrier`: all threads wait for each other before it.
struct Call {
  void (*run)(const Call& call, Range items, std::byte* scratch) = nullptr;
  uint64_t (*count)(const Call& call) = nullptr;
  void (*kernel)() = nullptr;  // the kernel itself, of the type that `run` knows
  void (*items)() = nullptr;   // its item count, likewise
  void* args = nullptr;
  bool take_turns = false;  // threads take shares as they come free; else one equal share each
  bool varies = false;      // its item count is another from step to step
  bool solo = false;        // the last thread runs all of it: solo calls need no wait between them
  bool barrier = true;
  uint32_t launch = 0;  // of the schedule
  Follow follow = Follow::Last;
  uint8_t together = 1;  // items that the kernel is fastest with at once: shares in turns are whole numbers of them
  std::vector<Call> followers;  // in order; each reads what the ones before it and the call wrote
};

// What the threads of one run of a call tell each other, on a cache line of its own.
struct alignas(64) Turn {
  ItemCounter counter;             // shares taken
  std::atomic<uint64_t> ended{0};  // items done

  // Before the run, by one thread.
  void reset(const Call& call);
};

// Thread `thread` of `threads` does its part of the call.
void run_call(const Call& call, Turn& turn, std::byte* scratch, uint32_t thread, uint32_t threads);

}  // namespace tw::lane::cpu
