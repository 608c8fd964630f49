#include "runtime/profile.h"

#include <algorithm>
#include <utility>

namespace tw::runtime {

using lane::cpu::StepTimes;

namespace {

double length(const StepTimes::Span& span) { return static_cast<double>(span.end - span.begin); }

}  // namespace

Spent& Spent::operator+=(const Spent& other) {
  launches += other.launches;
  busy += other.busy;
  waited += other.waited;
  work += other.work;
  return *this;
}

ProfiledForm& Profile::form_of(const TimedStep& step) {
  for (ProfiledForm& known : forms_) {
    if (known.form == step.schedule.form) return known;
  }
  ProfiledForm& form = forms_.emplace_back();
  form.form = step.schedule.form;
  for (StepLaunch& launch : launches_of(step, engine_)) form.launches.push_back({std::move(launch), {}});
  return form;
}

void Profile::add(const TimedStep& step) {
  ProfiledForm& form = form_of(step);
  const StepTimes& times = step.times;
  ++form.steps;
  form.wall += length(times.step());
  for (ProfiledLaunch& launch : form.launches) {
    ++launch.spent.launches;
    launch.spent.work += lane::work_of(step.schedule.launches[launch.launch].launch, step.schedule, step.before);
  }
  for (unsigned thread = 0; thread < times.threads(); ++thread) {
    StepTimes::Nanoseconds now = times.step().begin;
    auto launch = form.launches.begin();
    double* waiting = &form.starting;
    for (size_t call = 0; call < times.calls(); ++call) {
      if (launch->launch != step.calls[call].launch) ++launch;
      const StepTimes::Span& span = times.of(thread, call);
      *waiting += static_cast<double>(span.begin - now);
      launch->spent.busy += length(span);
      waiting = &launch->spent.waited;
      now = span.end;
    }
    *waiting += static_cast<double>(times.step().end - now);
  }
}

void Profile::restart() {
  for (ProfiledForm& form : forms_) {
    form.steps = 0;
    form.wall = form.starting = 0;
    for (ProfiledLaunch& launch : form.launches) launch.spent = {};
  }
}

std::vector<PhaseProfile> phases_of(const Profile& profile) {
  std::vector<PhaseProfile> phases;
  const auto phase_of = [&phases](const std::string& name) -> PhaseProfile& {
    for (PhaseProfile& phase : phases) {
      if (phase.name == name) return phase;
    }
    phases.emplace_back().name = name;
    return phases.back();
  };
  for (const ProfiledForm& form : profile.forms()) {
    if (form.steps == 0) continue;
    PhaseProfile& phase = phase_of(phase_name(form.form));
    phase.steps += form.steps;
    phase.rows += form.steps * form.form.rows;
    phase.wall += form.wall;
    phase.starting += form.starting;
    for (const ProfiledLaunch& launch : form.launches) {
      phase.all += launch.spent;
      auto kind = std::find_if(phase.kinds.begin(), phase.kinds.end(),
                               [&](const PhaseProfile::Kind& known) { return known.kind == launch.kind; });
      if (kind == phase.kinds.end()) kind = phase.kinds.insert(kind, {launch.kind, {}});
      kind->spent += launch.spent;
    }
  }
  for (PhaseProfile& phase : phases) {
    std::stable_sort(phase.kinds.begin(), phase.kinds.end(),
                     [](const auto& a, const auto& b) { return a.spent.busy > b.spent.busy; });
  }
  return phases;
}

}  // namespace tw::runtime
