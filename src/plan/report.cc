// The listing of a plan, as text and as JSON.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lane/print.h"
#include "plan/explain.h"

namespace tw::plan {

namespace {

std::string path_of(const lane::Launch& launch, const Knobs& knobs) {
  return knobs.shim != nullptr ? knobs.shim->path(launch, knobs.numerics) : std::string{};
}

std::vector<std::string> rules_of(const lane::Schedule& schedule, const std::vector<uint32_t>& firings) {
  std::vector<std::string> rules;
  for (const uint32_t f : firings) rules.push_back(schedule.fusions[f].rule);
  return rules;
}

std::string launch_text(const lane::Schedule& schedule, const graph::StepGraph& graph, const Knobs& knobs, size_t at,
                        const std::vector<uint32_t>& firings) {
  const lane::Planned& planned = schedule.launches[at];
  std::string text = fmt::format("{:>5}  {}\n", at, print(planned.launch, schedule));
  for (const graph::OpId op : planned.ops) {
    text += fmt::format("         op {:<5} {}\n", graph::index(op), op_text(graph, op));
  }
  const std::vector<std::string> rules = rules_of(schedule, firings);
  if (!rules.empty()) text += fmt::format("         rules    {}\n", fmt::join(rules, ", "));
  const std::string path = path_of(planned.launch, knobs);
  if (!path.empty()) text += fmt::format("         path     {}\n", path);
  const Traffic traffic = traffic_of(planned.launch, schedule);
  if (traffic.read + traffic.written != 0) {
    text += fmt::format("         bytes    {} read, {} written\n", traffic.read, traffic.written);
  }
  return text;
}

std::string buffers_text(const lane::Schedule& schedule) {
  std::string text = "buffers (what the step computes and carries)\n";
  for (const lane::Buffer& buffer : schedule.buffers) {
    if (buffer.fill == lane::Fill::Constant || !(buffer.plain || buffer.quantized)) continue;
    text += fmt::format("  {:<32} {}x{} {} {}", buffer.name, buffer.rows, buffer.cols, name(buffer.dtype),
                        name(buffer.fill));
    if (buffer.fill == lane::Fill::Alias) {
      text += fmt::format(" of {}+{}", schedule.at(buffer.alias_of).name, buffer.alias_offset);
    }
    if (buffer.plain_at) text += fmt::format(" plain@{}", *buffer.plain_at);
    if (buffer.quantized_at) text += fmt::format(" quantized@{}", *buffer.quantized_at);
    text += "\n";
  }
  return text;
}

template <class Counts>
std::string counts_text(std::string_view title, const Counts& counts) {
  std::string text(title);
  for (const auto& [name, count] : counts) text += fmt::format(" {}={}", name, count);
  return text + "\n";
}

}  // namespace

std::string report(const lane::Schedule& schedule, const graph::StepGraph& graph, const Knobs& knobs) {
  std::string text = lane::heading(schedule) + "\n";
  const auto firings = firings_of_launches(schedule);
  for (size_t at = 0; at < schedule.launches.size(); ++at) {
    text += launch_text(schedule, graph, knobs, at, firings[at]);
  }
  const Totals totals = totals_of(schedule);
  text += buffers_text(schedule);
  text += counts_text("census", census(schedule));
  text += counts_text("rules", firing_counts(schedule));
  if (!knobs.held.empty()) text += fmt::format("held {}\n", fmt::join(knobs.held, " "));
  text += fmt::format(
      "{} ops as {} launches, {} bytes of weights read, {} bytes of intermediates written, arena {} bytes\n",
      schedule.op_count, totals.launches, totals.weight_bytes, totals.intermediate_bytes, schedule.arena_bytes);
  return text;
}

nlohmann::ordered_json report_json(const lane::Schedule& schedule, const graph::StepGraph& graph, const Knobs& knobs) {
  nlohmann::ordered_json json = lane::to_json(schedule);
  const auto firings = firings_of_launches(schedule);
  for (size_t at = 0; at < schedule.launches.size(); ++at) {
    const lane::Planned& planned = schedule.launches[at];
    auto& launch = json["launches"][at];
    auto& ops = launch["ops"] = nlohmann::ordered_json::array();
    for (const graph::OpId op : planned.ops) {
      ops.push_back({{"op", graph::index(op)},
                     {"kind", graph::op_name(graph.at(op).spec)},
                     {"result", graph.at(graph.at(op).result).name}});
    }
    launch["rules"] = rules_of(schedule, firings[at]);
    launch["path"] = path_of(planned.launch, knobs);
    const Traffic traffic = traffic_of(planned.launch, schedule);
    launch["bytes_read"] = traffic.read;
    launch["bytes_written"] = traffic.written;
  }
  const Totals totals = totals_of(schedule);
  json["firings"] = firing_counts(schedule);
  json["held"] = knobs.held;
  json["totals"] = {{"ops", schedule.op_count},
                    {"launches", totals.launches},
                    {"weight_bytes", totals.weight_bytes},
                    {"intermediate_bytes", totals.intermediate_bytes}};
  return json;
}

}  // namespace tw::plan
