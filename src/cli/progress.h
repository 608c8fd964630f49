#pragma once

// A bar on stderr for work that takes a while: how much is done, of how many bytes, how fast.

#include <chrono>
#include <cstdint>
#include <string>

namespace tw::cli {

class ProgressBar {
 public:
  ProgressBar() : start_(Clock::now()), drawn_(start_) {}
  ~ProgressBar();  // takes the bar away
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws now and then; not at all when the work is done before anyone could read it. Requires done <= total.
  void show(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_, drawn_;
  bool visible_ = false;
};

// The line that the bar draws.
std::string progress_line(uint64_t done, uint64_t total, double seconds);

}  // namespace tw::cli
