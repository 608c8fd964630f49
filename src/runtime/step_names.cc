#include "runtime/step_names.h"

#include <fmt/format.h>

#include "base/check.h"
#include "plan/explain.h"

namespace tw::runtime {

namespace {

// The name of a launch that computes no op of the graph: a quantization of what others read.
constexpr std::string_view kNoOps = "quantized input";

std::string ops_text(const lane::Planned& planned, const graph::StepGraph& graph) {
  std::string text;
  for (const graph::OpId op : planned.ops) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", plan::op_text(graph, op));
  }
  return text.empty() ? std::string(kNoOps) : text;
}

}  // namespace

std::vector<StepLaunch> launches_of(const TimedStep& step, const Engine& engine) {
  const auto graph = engine.graph(step.schedule.form);
  TW_CHECK(graph.ok(), "a step that ran has no graph: {}", to_text(graph.refusal()));
  std::vector<StepLaunch> launches;
  for (const lane::cpu::Call& call : step.calls) {
    if (!launches.empty() && launches.back().launch == call.launch) continue;  // another kernel of the launch
    const lane::Planned& planned = step.schedule.launches[call.launch];
    launches.push_back({call.launch, std::string(kind_of(planned.launch)), ops_text(planned, *graph)});
  }
  return launches;
}

std::string phase_name(const graph::Form& form) {
  switch (form.kind) {
    case graph::Form::Kind::Decode: return "decode";
    case graph::Form::Kind::Chunk: return "prefill";
    case graph::Form::Kind::Batch: return fmt::format("batch of {}", form.rows);
  }
  return {};
}

}  // namespace tw::runtime
