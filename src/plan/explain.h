#pragma once

// What a reader asks of a plan: which rules made a launch, how many bytes it moves, why a rule did not fire, and how
// two plans differ.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/step_graph.h"
#include "lane/schedule.h"
#include "plan/plan.h"

namespace tw::plan {

// Bytes that a launch reads and writes when it runs once: weights in their file formats, of a cache all its positions,
// values in the types they are stored in.
struct Traffic {
  uint64_t read = 0, written = 0;
  Traffic& operator+=(const Traffic& other);
  bool operator==(const Traffic&) const = default;
};
Traffic traffic_of(const lane::Launch& launch, const lane::Schedule& schedule);

struct Totals {
  uint64_t launches = 0;            // views not counted
  uint64_t weight_bytes = 0;        // read a step
  uint64_t intermediate_bytes = 0;  // written to what the step computes for itself, its outputs not counted
};
Totals totals_of(const lane::Schedule& schedule);

// The firings that made each launch, by index into schedule.fusions.
std::vector<std::vector<uint32_t>> firings_of_launches(const lane::Schedule& schedule);

// How often a rule that can be held back fired.
uint64_t times_fired(const lane::Schedule& schedule, std::string_view rule);

// How often each firing's name occurs: a rule's, or a class of fuse_quant's.
std::map<std::string, uint64_t> firing_counts(const lane::Schedule& schedule);

// The launches in order, each with the ops it computes by name, the rules that made it, the lane's path and the bytes
// it moves; then buffers, census, firings and totals.
std::string report(const lane::Schedule& schedule, const graph::StepGraph& graph, const Knobs& knobs);
nlohmann::ordered_json report_json(const lane::Schedule& schedule, const graph::StepGraph& graph, const Knobs& knobs);

// The op named by its number or by its result; a set of rows is named by its number. Refuses a name that is no op's.
Result<graph::OpId> find_op(const graph::StepGraph& graph, std::string_view name);

// The launch that computes `op`, and every rule that took part, in the order they fired.
struct Why {
  graph::OpId op;
  std::vector<uint32_t> launches;  // of the schedule
  std::vector<uint32_t> firings;   // of schedule.fusions
};
Why why(const lane::Schedule& schedule, graph::OpId op);

// Where the rule fired, and where its pattern was and what kept it from firing; only at `op` when one is given.
struct WhyNot {
  std::vector<uint32_t> fired;  // of schedule.fusions
  std::vector<fuse::Missed> missed;
};
WhyNot why_not(const lane::Schedule& schedule, const Explanation& explanation, std::string_view rule,
               std::optional<graph::OpId> op);

// What differs between two plans: counts of launches and firings, and the launches that one has and the other has not,
// matched by kind and the names of the results of their ops.
struct Difference {
  std::map<std::string, std::pair<uint64_t, uint64_t>> census, firings;  // names whose counts differ
  std::vector<std::string> only_a, only_b;
  Totals a, b;
};
Difference difference(const lane::Schedule& a, const graph::StepGraph& graph_a, const lane::Schedule& b,
                      const graph::StepGraph& graph_b);

// "mul blk.0.gated" : an op as a reader names it.
std::string op_text(const graph::StepGraph& graph, graph::OpId op);

}  // namespace tw::plan
