#include "lane/cpu/pool.h"

#include <immintrin.h>

#include "base/check.h"

namespace tw::lane::cpu {
namespace {

// How long a thread spins before it gives the processor away: a few looks without a pause, since most waits are over
// within those, then about 50 us at a barrier and after a run.
constexpr uint32_t kLooks = 64;
constexpr uint32_t kSpins = 2000;
constexpr uint32_t kYields = 2;

constexpr unsigned kDefaultControl = 0x1f80;  // exceptions masked, nearest even, no FTZ, no DAZ

// A waiting thread spins, then gives the processor away a few times; when that is used up it parks, so that on a
// machine with other work it is woken as soon as it can go on instead of being asked in turn.
class Patience {
 public:
  explicit Patience(uint32_t spins) : spins_(spins) {}
  // False: park.
  bool spin() {
    if (spent_ == spins_ + kYields) return false;
    const uint32_t spent = spent_++;
    if (spent >= spins_) {
      std::this_thread::yield();
    } else if (spent >= kLooks) {
      _mm_pause();
    }
    return true;
  }

 private:
  uint32_t spins_;
  uint32_t spent_ = 0;
};

}  // namespace

FloatEnvironment::FloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(kDefaultControl); }
FloatEnvironment::~FloatEnvironment() { _mm_setcsr(saved_); }

// With more threads than processors spinning only delays the one that is waited for. (The count is asked for once: it
// costs a look into the file system.)
Pool::Pool(unsigned threads) : threads_(threads), spins_(threads <= std::thread::hardware_concurrency() ? kSpins : 1) {
  TW_CHECK(threads >= 1, "a pool of {} threads", threads);
  for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker(i); });
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
    round_.fetch_add(1);
  }
  start_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void Pool::run_erased(Erased call, const void* work) {
  const FloatEnvironment environment;
  if (threads_ == 1) return call(work, 0);
  call_ = call;
  work_ = work;
  running_.store(threads_ - 1, std::memory_order_relaxed);
  // Sequentially consistent with a worker's own "parked, then look again", so that one of the two sees the other.
  round_.fetch_add(1);
  if (parked_.load() != 0) {
    { const std::lock_guard lock(mutex_); }
    start_.notify_all();
  }
  call(work, 0);
  for (Patience patience(spins_);;) {
    const unsigned running = running_.load(std::memory_order_acquire);
    if (running == 0) return;
    if (!patience.spin()) running_.wait(running, std::memory_order_acquire);
  }
}

// The number of a round later than `seen`.
uint64_t Pool::await_round(uint64_t seen) {
  for (uint32_t spin = 0; spin < spins_; ++spin) {
    const uint64_t now = round_.load(std::memory_order_acquire);
    if (now != seen) return now;
    _mm_pause();
  }
  std::unique_lock lock(mutex_);
  parked_.fetch_add(1);
  start_.wait(lock, [&] { return round_.load() != seen; });
  parked_.fetch_sub(1);
  return round_.load();
}

void Pool::worker(unsigned thread) {
  const FloatEnvironment environment;
  uint64_t seen = 0;
  for (;;) {
    seen = await_round(seen);
    if (stop_.load()) return;
    call_(work_, thread);
    if (running_.fetch_sub(1, std::memory_order_release) == 1) running_.notify_all();
  }
}

// One counter of arrivals that only grows: the k-th barrier is complete at k * threads. A thread that is already at the
// next one only adds to it, so nothing is reset and a crossing costs one cache line.
void Pool::barrier() {
  if (threads_ == 1) return;
  const uint64_t before = arrived_.fetch_add(1, std::memory_order_acq_rel);
  const uint64_t complete = (before / threads_ + 1) * threads_;
  if (before + 1 == complete) return arrived_.notify_all();
  for (Patience patience(spins_);;) {
    const uint64_t arrived = arrived_.load(std::memory_order_acquire);
    if (arrived >= complete) return;
    if (!patience.spin()) arrived_.wait(arrived, std::memory_order_acquire);
  }
}

}  // namespace tw::lane::cpu
