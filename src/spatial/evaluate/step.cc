#include "spatial/evaluate/step.h"

#include <map>
#include <numeric>
#include <set>

#include "base/check.h"

namespace tw::spatial::evaluate {

Result<Step> Step::compile(std::span<const Program> sections) {
  std::map<std::string, uint64_t> writes;
  std::vector<Section> ready;
  for (const Program& program : sections) {
    TW_TRY(Evaluator evaluator, Evaluator::compile(program));
    Section section{std::move(evaluator), {}, {}, false};
    std::set<std::string> touched, written;
    for (const Tensor& tensor : program.tensors) {
      touched.insert(tensor.name);
      if (tensor.result()) written.insert(tensor.name);
    }
    for (const std::string& tensor : touched) section.expected.push_back({tensor, writes[tensor]});
    for (const std::string& tensor : written) ++writes[tensor];
    section.writes.assign(written.begin(), written.end());
    ready.push_back(std::move(section));
  }
  for (Section& section : ready) {
    const Program& program = section.evaluator.program();
    section.early_trip = program.work.k_trip && writes[program.at(program.work.k_trip->tensor).name] == 0;
  }
  return Step(std::move(ready));
}

Result<StepRun> Step::run(Memory& memory, const StepOptions& options) {
  std::vector<uint32_t> order = options.order;
  if (order.empty()) {
    order.resize(sections_.size());
    std::iota(order.begin(), order.end(), 0);
  }
  StepRun step;
  for (const uint32_t number : order) {
    TW_CHECK(number < sections_.size(), "section {} of {} is to run", number, sections_.size());
    if (!sections_[number].early_trip) continue;
    TW_TRY(step.fault, sections_[number].evaluator.check_trip(memory));
    step.section = number;
    if (step.fault) return step;
  }
  std::map<std::string, uint64_t> writes;
  for (const uint32_t number : order) {
    Section& section = sections_[number];
    step.section = number;
    for (const Expected& expected : section.expected)
      if (const uint64_t times = writes[expected.tensor]; times != expected.writes) {
        const auto want = static_cast<int64_t>(expected.writes);
        step.fault = Fault{FaultKind::WrongVersion, section.evaluator.program().name, {},   0,
                           expected.tensor,         static_cast<int64_t>(times),      want, want};
        return step;
      }
    Options how = options.sections;
    if (!options.items.empty()) {
      how.order = ItemOrder::Given;
      how.items = options.items.at(number);
    }
    TW_TRY(const Run run, section.evaluator.run(memory, how));
    step.runs.push_back(run);
    step.fault = run.fault;
    if (step.fault) return step;
    for (const std::string& tensor : section.writes) ++writes[tensor];
  }
  return step;
}

}  // namespace tw::spatial::evaluate
