#pragma once

// Profiles and traces of the steps that a verb runs, and this machine's limits that they are held against.

#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/roofline.h"
#include "runtime/profile.h"
#include "runtime/trace.h"

namespace tw::cli {

// What this machine can do with an engine's threads and instruction set. Other work and other machines on the same
// memory change it from second to second, so it is measured in between what is held against it.
struct Limits {
  double read = 0;           // bytes a second, streaming over as much memory as the weights of a step take: the median
  double most_read = 0;      // the best
  lane::cpu::DotPeaks dots;  // the best

  [[nodiscard]] double peak() const { return dots.best(); }
};

class LimitsMeter {
 public:
  static Result<LimitsMeter> make(const runtime::Engine& engine);
  void measure();
  // Requires a measure() before.
  [[nodiscard]] Limits limits() const;

 private:
  LimitsMeter(lane::cpu::Isa isa, std::unique_ptr<lane::cpu::Pool> pool, uint64_t bytes);

  lane::cpu::Isa isa_;
  std::unique_ptr<lane::cpu::Pool> pool_;
  lane::cpu::StreamRead stream_;
  std::vector<double> reads_;
  lane::cpu::DotPeaks dots_;
};
nlohmann::ordered_json limits_json(const Limits& limits);
std::string limits_text(const Limits& limits);

// --profile[=launches] --trace FILE
struct ProfileFlags {
  std::string profile, trace;
  void add_to(const Verb& verb);
  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] bool on() const { return !profile.empty() || !trace.empty(); }
};

// Follows an engine's steps while it lives, when the flags ask for it.
class Recording {
 public:
  Recording(runtime::Engine& engine, const ProfileFlags& flags);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void restart();  // forgets what was seen

  // Writes the trace, if one was asked for.
  [[nodiscard]] Result<void> write_trace(const std::string& title) const;
  // The profile, if one was asked for.
  void print(std::FILE* to, const Limits& limits) const;
  [[nodiscard]] nlohmann::ordered_json json(const Limits& limits) const;

 private:
  runtime::Engine& engine_;
  const ProfileFlags& flags_;
  runtime::Profile profile_;
  runtime::Trace trace_;
};

}  // namespace tw::cli
