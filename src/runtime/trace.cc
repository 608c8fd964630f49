#include "runtime/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tw::runtime {

using lane::cpu::StepTimes;

namespace {

// Track 0 holds the steps, track 1 + t thread t.
constexpr unsigned kFirstThread = 1;

// Bytes that are not UTF-8 are shown as U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The kind of a launch and the first op it computes.
std::string short_name(const StepLaunch& launch) {
  return fmt::format("{} {}", launch.kind, launch.ops.substr(0, launch.ops.find(',')));
}

std::string track_name(unsigned track, const std::string& name) {
  return fmt::format(
      R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_name","args":{{"name":{1}}}}},
{{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
      track, quoted(name));
}

// A complete event; times in microseconds from the first step on.
std::string event(const std::string& name, std::string_view category, unsigned track, const StepTimes::Span& span,
                  StepTimes::Nanoseconds origin, const std::string& args) {
  return fmt::format(R"({{"ph":"X","pid":1,"tid":{},"cat":"{}","name":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                     track, category, quoted(name), static_cast<double>(span.begin - origin) * 1e-3,
                     static_cast<double>(span.end - span.begin) * 1e-3, args);
}

}  // namespace

size_t Trace::form_of(const TimedStep& step) {
  for (size_t i = 0; i < forms_.size(); ++i) {
    if (forms_[i].form == step.schedule.form) return i;
  }
  Form& form = forms_.emplace_back();
  form.form = step.schedule.form;
  form.launches = launches_of(step, engine_);
  return forms_.size() - 1;
}

void Trace::add(const TimedStep& step) {
  uint32_t& kept = kept_[phase_name(step.schedule.form)];
  if (kept == limit_) return;
  ++kept;
  const StepTimes& times = step.times;
  threads_ = std::max(threads_, times.threads());
  const size_t form = form_of(step);
  Step& out = steps_.emplace_back();
  out.form = form;
  out.position = step.before.empty() ? 0 : step.before[0];
  out.span = times.step();
  for (unsigned thread = 0; thread < times.threads(); ++thread) {
    uint32_t launch = 0;
    for (size_t call = 0; call < times.calls(); ++call) {
      const StepTimes::Span& span = times.of(thread, call);
      if (call != 0 && step.calls[call].launch == step.calls[call - 1].launch) {
        out.events.back().span.end = span.end;  // another kernel of the launch
        continue;
      }
      if (call != 0) ++launch;
      out.events.push_back({launch, thread, span});
    }
  }
}

void Trace::restart() {
  steps_.clear();
  kept_.clear();
}

Result<void> Trace::write(const std::filesystem::path& path, const std::string& title) const {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  const auto refusal = [&path](std::string_view what) {
    return refuse(RefusalKind::Io, path.string(), fmt::format("{}: {}", what, std::strerror(errno)));
  };
  if (!file) return refusal("cannot be opened for writing");
  file << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  file << fmt::format(R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}},)", quoted(title)) << '\n';
  file << track_name(0, "steps");
  for (unsigned thread = 0; thread < threads_; ++thread) {
    file << ",\n" << track_name(kFirstThread + thread, fmt::format("thread {}", thread));
  }
  const StepTimes::Nanoseconds origin = steps_.empty() ? 0 : steps_.front().span.begin;
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const Form& form = forms_[step.form];
    file << ",\n"
         << event(phase_name(form.form), "step", 0, step.span, origin,
                  fmt::format(R"("step":{},"form":"{}","position":{})", s, graph::to_text(form.form), step.position));
    for (const Event& e : step.events) {
      const StepLaunch& launch = form.launches[e.launch];
      file << ",\n"
           << event(short_name(launch), "launch", kFirstThread + e.thread, e.span, origin,
                    fmt::format(R"("step":{},"launch":{},"ops":{})", s, launch.launch, quoted(launch.ops)));
    }
  }
  file << "\n]}\n";
  file.flush();
  if (!file) return refusal("cannot be written to its end");
  return {};
}

}  // namespace tw::runtime
