#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/common.h"

namespace tw::cli {
namespace {

constexpr std::chrono::milliseconds kBeforeFirst{250}, kBetween{50};
constexpr uint64_t kWidth = 30;

}  // namespace

std::string progress_line(uint64_t done, uint64_t total, double seconds) {
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<uint64_t>(share * kWidth);
  const auto rate = static_cast<uint64_t>(seconds > 0 ? static_cast<double>(done) / seconds : 0);
  return fmt::format("preparing weights [{:#<{}}{:.<{}}] {:3}%  {} of {}, {}/s", "", filled, "", kWidth - filled,
                     static_cast<int>(share * 100), human_bytes(done), human_bytes(total), human_bytes(rate));
}

ProgressBar::~ProgressBar() {
  if (!visible_) return;
  fmt::print(stderr, "\r{:100}\r", "");
  std::fflush(stderr);
}

void ProgressBar::show(uint64_t done, uint64_t total) {
  const auto now = Clock::now();
  if (now - start_ < kBeforeFirst || (visible_ && now - drawn_ < kBetween)) return;
  drawn_ = now;
  visible_ = true;
  fmt::print(stderr, "\r{:<99}", progress_line(done, total, std::chrono::duration<double>(now - start_).count()));
  std::fflush(stderr);
}

}  // namespace tw::cli
