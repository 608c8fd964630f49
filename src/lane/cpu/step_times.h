#pragma once

// When each thread began and ended each call of one step. Made once and filled step by step, so that timing a step
// allocates nothing.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tw::lane::cpu {

class StepTimes {
 public:
  using Nanoseconds = int64_t;  // of the monotonic clock
  struct Span {
    Nanoseconds begin = 0, end = 0;
  };

  StepTimes(size_t calls, unsigned threads)
      : calls_(calls), stride_(calls + kLine), threads_(threads), spans_(threads * stride_) {}

  [[nodiscard]] size_t calls() const { return calls_; }
  [[nodiscard]] unsigned threads() const { return threads_; }
  [[nodiscard]] const Span& of(unsigned thread, size_t call) const { return spans_[thread * stride_ + call]; }
  // The whole step, from before its threads are woken to after the last has ended.
  [[nodiscard]] const Span& step() const { return step_; }

  static Nanoseconds now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  // What the runner of one thread tells.
  class Recorder {
   public:
    explicit Recorder(Span* spans) : spans_(spans) {}
    void begin(size_t call) { spans_[call].begin = now(); }
    void end(size_t call) { spans_[call].end = now(); }

   private:
    Span* spans_;
  };
  [[nodiscard]] Recorder recorder(unsigned thread) { return Recorder(spans_.data() + thread * stride_); }
  Span& step() { return step_; }

 private:
  static constexpr size_t kLine = 64 / sizeof(Span);  // threads write to lines of their own

  size_t calls_, stride_;
  unsigned threads_;
  std::vector<Span> spans_;
  Span step_;
};

}  // namespace tw::lane::cpu
