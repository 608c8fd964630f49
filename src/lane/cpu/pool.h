#pragma once

// The lane's threads: started once, they spin briefly for work and then park. The caller is one of them, so a pool of
// one thread has no thread of its own and runs everything in place.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// Hands out the items of one kernel: each call of next() takes the following `grain` of them.
class ItemCounter {
 public:
  void reset() { taken_.store(0, std::memory_order_relaxed); }
  // An empty range when all are taken.
  Range next(uint64_t count, uint64_t grain) {
    const uint64_t begin = taken_.fetch_add(grain, std::memory_order_relaxed);
    if (begin >= count) return {};
    return {begin, grain < count - begin ? begin + grain : count};
  }
  // The following one of `parts` equal parts of the items that are left, in whole numbers of `together` items as long
  // as so many are left.
  Range next_of_rest(uint64_t count, uint64_t parts, uint64_t together = 1) {
    uint64_t begin = taken_.load(std::memory_order_relaxed);
    while (begin < count) {
      const uint64_t left = count - begin, part = left / parts / together * together;
      const uint64_t least = together < left ? together : left;
      const uint64_t end = begin + (part == 0 ? least : part);
      if (taken_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) return {begin, end};
    }
    return {};
  }

 private:
  std::atomic<uint64_t> taken_{0};
};

class Pool {
 public:
  explicit Pool(unsigned threads);  // at least 1
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  unsigned threads() const { return threads_; }

  // Runs work(thread), thread in [0, threads), on every thread at once and returns when all have returned. Called by
  // one thread at a time, and not from within work. Every thread computes with denormals kept (FTZ and DAZ off).
  template <class Work>
  void run(const Work& work) {
    run_erased([](const void* w, unsigned thread) { (*static_cast<const Work*>(w))(thread); }, &work);
  }

  // Within work: returns when every thread has come here; what they wrote before is seen after. Spins, then
  // parks.
  void barrier();

 private:
  using Erased = void (*)(const void*, unsigned);
  void run_erased(Erased call, const void* work);
  void worker(unsigned thread);
  uint64_t await_round(uint64_t seen);

  const unsigned threads_;
  const uint32_t spins_;  // looks before a waiting thread gives the processor away
  Erased call_ = nullptr;
  const void* work_ = nullptr;

  alignas(64) std::atomic<uint64_t> round_{0};  // counts runs; the workers' signal
  alignas(64) std::atomic<unsigned> running_{0};
  alignas(64) std::atomic<uint64_t> arrived_{0};  // at barriers, ever

  std::mutex mutex_;
  std::condition_variable start_;
  std::atomic<unsigned> parked_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

// Denormals are kept and results rounded to nearest on the calling thread while this lives.
class FloatEnvironment {
 public:
  FloatEnvironment();
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  unsigned saved_;
};

}  // namespace tw::lane::cpu
