#include "plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "fuse/quantize.h"
#include "lane/uses.h"
#include "lane/work.h"

namespace tw::plan {

namespace {

using lane::Buffer;
using lane::BufferId;
using lane::Fill;
using lane::TouchForm;
using lane::Use;

uint64_t values_of(const Use& use, const Buffer& buffer) {
  if (use.rows && use.writes) return use.row_count * use.rows->pitch;
  if (use.part && use.writes) return use.units * use.width;
  return use.whole != 0 ? use.whole : buffer.size();
}

uint64_t bytes_of_use(const Use& use, const lane::Schedule& schedule) {
  const Buffer& buffer = schedule.at(use.buffer);
  const uint64_t values = values_of(use, buffer);
  const uint32_t words = schedule.numerics == lane::Numerics::Int8x2 ? 2 : 1;
  if (use.form == TouchForm::Quantized) return values * words + values / lane::kQuantBlock * sizeof(float);
  return values * lane::bytes_of(schedule.at(span_of(schedule, use.buffer).root).dtype);
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  read += other.read;
  written += other.written;
  return *this;
}

Traffic traffic_of(const lane::Launch& launch, const lane::Schedule& schedule) {
  Traffic traffic;
  traffic.read = lane::work_of(launch).weight_bytes;
  for (const Use& use : uses(launch, schedule.numerics)) {
    if (use.form == TouchForm::Weight) continue;
    const uint64_t bytes = bytes_of_use(use, schedule);
    if (use.reads) traffic.read += bytes;
    if (use.writes) traffic.written += bytes;
  }
  return traffic;
}

Totals totals_of(const lane::Schedule& schedule) {
  std::set<uint32_t> outputs;
  for (const auto& io : schedule.io.sequences) {
    for (const BufferId id : {io.logits, io.next}) outputs.insert(lane::index(span_of(schedule, id).root));
  }
  Totals totals;
  totals.weight_bytes = lane::work_of(schedule).weight_bytes;
  for (const lane::Planned& planned : schedule.launches) {
    if (!std::holds_alternative<lane::View>(planned.launch)) ++totals.launches;
    for (const Use& use : uses(planned.launch, schedule.numerics)) {
      const BufferId root = use.form == TouchForm::Weight ? use.buffer : span_of(schedule, use.buffer).root;
      if (!use.writes || schedule.at(root).fill != Fill::Computed || outputs.count(lane::index(root)) != 0) continue;
      totals.intermediate_bytes += bytes_of_use(use, schedule);
    }
  }
  return totals;
}

std::vector<std::vector<uint32_t>> firings_of_launches(const lane::Schedule& schedule) {
  std::vector<std::vector<uint32_t>> out(schedule.launches.size());
  std::vector<std::vector<uint32_t>> launches_of(schedule.op_count);
  for (uint32_t i = 0; i < schedule.launches.size(); ++i) {
    for (const graph::OpId op : schedule.launches[i].ops) launches_of[graph::index(op)].push_back(i);
  }
  for (uint32_t f = 0; f < schedule.fusions.size(); ++f) {
    std::set<uint32_t> made;
    for (const graph::OpId op : schedule.fusions[f].ops) {
      made.insert(launches_of[graph::index(op)].begin(), launches_of[graph::index(op)].end());
    }
    for (const uint32_t launch : made) out[launch].push_back(f);
  }
  return out;
}

uint64_t times_fired(const lane::Schedule& schedule, std::string_view rule) {
  return static_cast<uint64_t>(std::count_if(schedule.fusions.begin(), schedule.fusions.end(), [&](const auto& firing) {
    return fuse::is_firing_of(firing.rule, rule);
  }));
}

std::map<std::string, uint64_t> firing_counts(const lane::Schedule& schedule) {
  std::map<std::string, uint64_t> counts;
  for (const lane::Firing& firing : schedule.fusions) ++counts[firing.rule];
  return counts;
}

std::string op_text(const graph::StepGraph& graph, graph::OpId op) {
  return fmt::format("{} {}", graph::op_name(graph.at(op).spec), graph.at(graph.at(op).result).name);
}

Result<graph::OpId> find_op(const graph::StepGraph& graph, std::string_view name) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) {
    if (number < graph.ops.size()) return graph::OpId{number};
    return refuse(RefusalKind::Usage, name, fmt::format("is no op: the step has {}", graph.ops.size()));
  }
  for (uint32_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.at(graph.ops[i].result).name == name) return graph::OpId{i};
  }
  return refuse(RefusalKind::Usage, name, "is neither the number nor the result of an op of this step",
                "tilewright graph prints the ops with their results.");
}

Why why(const lane::Schedule& schedule, graph::OpId op) {
  const auto has = [op](const std::vector<graph::OpId>& ops) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  Why out;
  out.op = op;
  for (uint32_t i = 0; i < schedule.launches.size(); ++i) {
    if (has(schedule.launches[i].ops)) out.launches.push_back(i);
  }
  for (uint32_t f = 0; f < schedule.fusions.size(); ++f) {
    if (has(schedule.fusions[f].ops)) out.firings.push_back(f);
  }
  return out;
}

WhyNot why_not(const lane::Schedule& schedule, const Explanation& explanation, std::string_view rule,
               std::optional<graph::OpId> op) {
  const auto wanted = [&](const std::vector<graph::OpId>& ops) {
    return !op || std::find(ops.begin(), ops.end(), *op) != ops.end();
  };
  WhyNot out;
  for (uint32_t f = 0; f < schedule.fusions.size(); ++f) {
    const lane::Firing& firing = schedule.fusions[f];
    if (fuse::is_firing_of(firing.rule, rule) && wanted(firing.ops)) out.fired.push_back(f);
  }
  for (const fuse::Missed& missed : explanation.missed) {
    if (missed.rule == rule && wanted(missed.covers)) out.missed.push_back(missed);
  }
  return out;
}

namespace {

// A launch as text that does not depend on where it stands: its kind and what it computes.
std::string identity(const lane::Planned& planned, const graph::StepGraph& graph) {
  std::string text(kind_of(planned.launch));
  if (const auto* quant = std::get_if<lane::Quant>(&planned.launch)) {
    return fmt::format("{} of {}", text, graph.tensors[lane::index(quant->x)].name);
  }
  for (size_t i = 0; i < planned.ops.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " of " : ", ", op_text(graph, planned.ops[i]));
  }
  return text;
}

std::multiset<std::string> identities(const lane::Schedule& schedule, const graph::StepGraph& graph) {
  std::multiset<std::string> out;
  for (const lane::Planned& planned : schedule.launches) {
    if (!std::holds_alternative<lane::View>(planned.launch)) out.insert(identity(planned, graph));
  }
  return out;
}

void compare(const std::map<std::string, uint64_t>& a, const std::map<std::string, uint64_t>& b,
             std::map<std::string, std::pair<uint64_t, uint64_t>>& out) {
  for (const auto& [name, count] : a) out[name].first = count;
  for (const auto& [name, count] : b) out[name].second = count;
  std::erase_if(out, [](const auto& item) { return item.second.first == item.second.second; });
}

}  // namespace

Difference difference(const lane::Schedule& a, const graph::StepGraph& graph_a, const lane::Schedule& b,
                      const graph::StepGraph& graph_b) {
  Difference out;
  compare(census(a), census(b), out.census);
  compare(firing_counts(a), firing_counts(b), out.firings);
  const std::multiset<std::string> in_a = identities(a, graph_a), in_b = identities(b, graph_b);
  std::set_difference(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(out.only_a));
  std::set_difference(in_b.begin(), in_b.end(), in_a.begin(), in_a.end(), std::back_inserter(out.only_b));
  out.a = totals_of(a), out.b = totals_of(b);
  return out;
}

}  // namespace tw::plan
