#include "cli/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lane/work.h"

namespace tw::cli {

namespace {

using runtime::PhaseProfile;
using runtime::ProfiledForm;
using runtime::ProfiledSteps;
using runtime::Spent;

// What a launch, launches of a kind or all of them take of one step.
struct Row {
  double launches = 0;
  double milliseconds = 0, waited = 0;  // a thread, a step
  double share = 0, waited_share = 0;   // of the thread time
  double weight_bytes = 0, state_bytes = 0, products = 0;
  double bytes_per_second = 0, of_read = 0, of_dots = 0;
};

Row row_of(const Spent& spent, const ProfiledSteps& of, uint32_t threads, const Limits& limits) {
  const double every = 1.0 / static_cast<double>(of.steps);
  Row row;
  row.launches = static_cast<double>(spent.launches) * every;
  row.milliseconds = spent.busy * 1e-6 * every / threads;
  row.waited = spent.waited * 1e-6 * every / threads;
  row.share = spent.busy / of.thread_time(threads);
  row.waited_share = spent.waited / of.thread_time(threads);
  row.weight_bytes = static_cast<double>(spent.work.weight_bytes) * every;
  row.state_bytes = static_cast<double>(spent.work.state_bytes) * every;
  row.products = static_cast<double>(spent.work.products) * every;
  if (row.milliseconds > 0) {
    const double seconds = row.milliseconds * 1e-3;
    row.bytes_per_second = (row.weight_bytes + row.state_bytes) / seconds;
    row.of_read = row.bytes_per_second / limits.read;
    row.of_dots = row.products / seconds / limits.peak();
  }
  return row;
}

// The whole step: its bytes and multiply-adds in the time it took, waiting included.
Row whole_row(const PhaseProfile& phase, uint32_t threads, const Limits& limits) {
  Spent all = phase.all;
  all.busy = phase.thread_time(threads);
  all.waited = 0;
  return row_of(all, phase, threads, limits);
}

constexpr std::string_view kHead = "{:<14} {:>8} {:>9} {:>7} {:>7} {:>11} {:>10} {:>9} {:>7} {:>8} {:>8}  {}\n";

void print_head(std::FILE* to, std::string_view name, std::string_view last) {
  fmt::print(to, fmt::runtime(kHead), name, "launches", "ms", "share", "waited", "MB weights", "MB state", "M madds",
             "GB/s", "of read", "of dots", last);
}

void print_row(std::FILE* to, std::string_view name, const Row& row, std::string_view last) {
  const auto percent = [](double share) { return fmt::format("{:.1f}%", 100 * share); };
  fmt::print(to, fmt::runtime(kHead), name, fmt::format("{:.0f}", row.launches),
             fmt::format("{:.3f}", row.milliseconds), percent(row.share), percent(row.waited_share),
             fmt::format("{:.3f}", row.weight_bytes * 1e-6), fmt::format("{:.3f}", row.state_bytes * 1e-6),
             fmt::format("{:.2f}", row.products * 1e-6), fmt::format("{:.2f}", row.bytes_per_second * 1e-9),
             percent(row.of_read), percent(row.of_dots), last);
}

void print_phase(std::FILE* to, const PhaseProfile& phase, uint32_t threads, const Limits& limits) {
  fmt::print(to, "\n{}: {} steps, {} tokens, {:.3f} ms a step, {} threads\n\n", phase.name, phase.steps, phase.rows,
             phase.wall * 1e-6 / static_cast<double>(phase.steps), threads);
  print_head(to, "launch", "");
  for (const PhaseProfile::Kind& kind : phase.kinds) {
    print_row(to, kind.kind, row_of(kind.spent, phase, threads, limits), "");
  }
  const double starting = phase.starting / phase.thread_time(threads);
  fmt::print(to, "{:<14} {:>8} {:>9.3f} {:>7} {:>6.1f}%\n", "(start)", "",
             phase.starting * 1e-6 / static_cast<double>(phase.steps) / threads, "", 100 * starting);
  print_row(to, "whole step", whole_row(phase, threads, limits), "");
  fmt::print(to, "in launches {:.1f}% of the thread time, waiting {:.1f}%\n",
             100 * phase.all.busy / phase.thread_time(threads),
             100 * (phase.all.waited + phase.starting) / phase.thread_time(threads));
}

void print_launches(std::FILE* to, const ProfiledForm& form, uint32_t threads, const Limits& limits) {
  if (form.steps == 0) return;
  fmt::print(to, "\neach launch of {} ({} steps)\n\n", graph::to_text(form.form), form.steps);
  print_head(to, "launch", "ops");
  for (const runtime::ProfiledLaunch& launch : form.launches) {
    print_row(to, fmt::format("{} {}", launch.launch, launch.kind), row_of(launch.spent, form, threads, limits),
              launch.ops);
  }
}

nlohmann::ordered_json row_json(const Row& row) {
  return {{"launches", row.launches},
          {"milliseconds", row.milliseconds},
          {"share", row.share},
          {"waited_milliseconds", row.waited},
          {"waited_share", row.waited_share},
          {"weight_bytes", row.weight_bytes},
          {"state_bytes", row.state_bytes},
          {"multiply_adds", row.products},
          {"bytes_per_second", row.bytes_per_second},
          {"share_of_read", row.of_read},
          {"share_of_dots", row.of_dots}};
}

nlohmann::ordered_json named(std::string_view key, const std::string& name, const nlohmann::ordered_json& rest) {
  nlohmann::ordered_json json{{key, name}};
  json.update(rest);
  return json;
}

nlohmann::ordered_json phase_json(const PhaseProfile& phase, uint32_t threads, const Limits& limits) {
  auto kinds = nlohmann::ordered_json::array();
  for (const PhaseProfile::Kind& kind : phase.kinds) {
    kinds.push_back(named("kind", kind.kind, row_json(row_of(kind.spent, phase, threads, limits))));
  }
  return {{"phase", phase.name},
          {"steps", phase.steps},
          {"tokens", phase.rows},
          {"milliseconds_a_step", phase.wall * 1e-6 / static_cast<double>(phase.steps)},
          {"starting_share", phase.starting / phase.thread_time(threads)},
          {"kinds", kinds},
          {"step", row_json(whole_row(phase, threads, limits))}};
}

nlohmann::ordered_json form_json(const ProfiledForm& form, uint32_t threads, const Limits& limits) {
  auto launches = nlohmann::ordered_json::array();
  for (const runtime::ProfiledLaunch& launch : form.launches) {
    auto json = named("kind", launch.kind, row_json(row_of(launch.spent, form, threads, limits)));
    json["launch"] = launch.launch;
    json["ops"] = launch.ops;
    launches.push_back(std::move(json));
  }
  return {{"form", graph::to_text(form.form)}, {"steps", form.steps}, {"launches", launches}};
}

}  // namespace

LimitsMeter::LimitsMeter(lane::cpu::Isa isa, std::unique_ptr<lane::cpu::Pool> pool, uint64_t bytes)
    : isa_(isa), pool_(std::move(pool)), stream_(isa, *pool_, bytes) {}

Result<LimitsMeter> LimitsMeter::make(const runtime::Engine& engine) {
  TW_TRY(const lane::Schedule decode, engine.schedule({}));
  return LimitsMeter(engine.isa(), std::make_unique<lane::cpu::Pool>(engine.threads()),
                     lane::work_of(decode).weight_bytes);
}

void LimitsMeter::measure() {
  reads_.push_back(stream_.run());
  const lane::cpu::DotPeaks now = lane::cpu::dot_peaks(isa_, *pool_, 1);
  dots_ = {std::max(dots_.bytes, now.bytes), std::max(dots_.codes, now.codes)};
}

Limits LimitsMeter::limits() const {
  std::vector<double> sorted = reads_;
  std::sort(sorted.begin(), sorted.end());
  return {sorted[sorted.size() / 2], sorted.back(), dots_};
}

nlohmann::ordered_json limits_json(const Limits& limits) {
  return {{"stream_read_bytes_per_second", limits.read},
          {"best_stream_read_bytes_per_second", limits.most_read},
          {"int8_dot_peak_per_second", limits.peak()},
          {"int8_whole_byte_dots_per_second", limits.dots.bytes}};
}

std::string limits_text(const Limits& limits) {
  return fmt::format(
      "streaming read {:.2f} GB/s (best {:.2f}), int8 dot peak {:.1f} G multiply-adds/s ({:.1f} of whole bytes)",
      limits.read / 1e9, limits.most_read / 1e9, limits.peak() / 1e9, limits.dots.bytes / 1e9);
}

void ProfileFlags::add_to(const Verb& verb) {
  verb.flag("--profile{kinds}", profile,
            "Where the time goes, by kind of launch; --profile=launches: by each launch too");
  verb.option("--trace", trace,
              "Write the first steps to a file that ui.perfetto.dev and chrome://tracing show, a track a thread");
}

Result<void> ProfileFlags::check() const {
  if (profile.empty() || profile == "kinds" || profile == "launches") return {};
  return refuse(RefusalKind::Usage, "--profile", fmt::format("does not know \"{}\"", profile),
                "It takes kinds (the default) or launches.");
}

Recording::Recording(runtime::Engine& engine, const ProfileFlags& flags)
    : engine_(engine), flags_(flags), profile_(engine), trace_(engine) {
  if (!flags_.on()) return;
  engine_.time_steps([this](const runtime::TimedStep& step) {
    if (!flags_.profile.empty()) profile_.add(step);
    if (!flags_.trace.empty()) trace_.add(step);
  });
}

Recording::~Recording() { engine_.time_steps({}); }

void Recording::restart() {
  profile_.restart();
  trace_.restart();
}

Result<void> Recording::write_trace(const std::string& title) const {
  if (flags_.trace.empty()) return {};
  return trace_.write(flags_.trace, title);
}

void Recording::print(std::FILE* to, const Limits& limits) const {
  if (flags_.profile.empty()) return;
  for (const PhaseProfile& phase : phases_of(profile_)) print_phase(to, phase, engine_.threads(), limits);
  if (flags_.profile != "launches") return;
  for (const ProfiledForm& form : profile_.forms()) print_launches(to, form, engine_.threads(), limits);
}

nlohmann::ordered_json Recording::json(const Limits& limits) const {
  auto phases = nlohmann::ordered_json::array();
  for (const PhaseProfile& phase : phases_of(profile_)) phases.push_back(phase_json(phase, engine_.threads(), limits));
  nlohmann::ordered_json json{{"phases", phases}};
  if (flags_.profile != "launches") return json;
  json["forms"] = nlohmann::ordered_json::array();
  for (const ProfiledForm& form : profile_.forms()) {
    if (form.steps != 0) json["forms"].push_back(form_json(form, engine_.threads(), limits));
  }
  return json;
}

}  // namespace tw::cli
