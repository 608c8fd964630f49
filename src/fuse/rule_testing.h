#pragma once

// Support for tests of rules: optimizing a graph written as text.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuse/graph.h"
#include "fuse/optimize.h"
#include "fuse/rules.h"
#include "graph/text.h"
#include "lane/launch.h"

namespace tw::fuse::testing {

// Constants whose names begin with w are checkpoint rows in Q8_0, with w6 in Q6_K, with f in F32; others are values.
inline void place_constants(const graph::StepGraph& graph, graph::Constants& constants) {
  for (const graph::Tensor& tensor : graph.tensors) {
    if (tensor.role != graph::Role::Constant || constants.count(tensor.name) != 0) continue;
    const char first = tensor.name[0];
    if (first != 'w' && first != 'f') {
      constants[tensor.name] = graph::Values{std::make_shared<std::vector<float>>(tensor.size(), 1.0F), nullptr};
      continue;
    }
    graph::Rows rows;
    rows.format = first == 'f' ? gguf::Format::F32 : gguf::Format::Q8_0;
    if (tensor.name.starts_with("w6")) rows.format = gguf::Format::Q6_K;
    rows.row_values = tensor.rows;
    rows.count = tensor.cols;
    constants[tensor.name] = rows;
  }
}

// A lane that refuses launches of one census kind.
class Without final : public Shim {
 public:
  explicit Without(std::string kind) : kind_(std::move(kind)) {}
  [[nodiscard]] std::optional<std::string> refuses(const lane::Launch& launch, lane::Numerics) const override {
    if (lane::kind_of(launch) != kind_) return std::nullopt;
    return "there is no kernel for " + kind_;
  }
  [[nodiscard]] std::string path(const lane::Launch&, lane::Numerics) const override { return {}; }

 private:
  std::string kind_;
};

// A graph of `form` from the lines of its text, optimized.
struct Optimized {
  graph::StepGraph step;
  std::vector<lane::Launch> launches;            // in order, views left out
  std::vector<std::vector<graph::OpId>> covers;  // of each
  Outcome outcome;

  [[nodiscard]] int fired(std::string_view rule) const {
    int times = 0;
    for (const Fired& each : outcome.fired) times += each.rule == rule ? 1 : 0;
    return times;
  }
  [[nodiscard]] std::string missed(std::string_view rule) const {
    std::string all;
    for (const Missed& each : outcome.missed) {
      if (each.rule == rule) all += each.why + "\n";
    }
    return all;
  }
  // The only launch of type L.
  template <class L>
  [[nodiscard]] const L& only() const {
    const L* found = nullptr;
    for (const lane::Launch& launch : launches) {
      if (const auto* l = std::get_if<L>(&launch)) {
        EXPECT_EQ(found, nullptr) << "several launches of the kind";
        found = l;
      }
    }
    if (found == nullptr) throw std::runtime_error("no launch of the kind");
    return *found;
  }
  [[nodiscard]] std::string name(lane::BufferId id) const {
    return lane::present(id) ? step.tensors[lane::index(id)].name : "-";
  }
};

// The launches, one an op, of the lines of a text; `step` is what the graph refers to.
inline Graph lifted(std::string_view form, std::string_view body, graph::StepGraph& step) {
  auto parsed = graph::parse("graph test " + std::string(form) + "\n" + std::string(body), "test");
  if (!parsed) throw std::runtime_error(to_text(parsed.refusal()));
  step = std::move(parsed->graph);
  place_constants(step, parsed->constants);
  auto graph = Graph::lift(step, parsed->constants);
  if (!graph) throw std::runtime_error(to_text(graph.refusal()));
  return std::move(*graph);
}

inline Optimized optimized(std::string_view form, std::string_view body, const std::vector<std::string>& held = {},
                           const Shim& shim = AnyLaunch{}, lane::Numerics numerics = lane::Numerics::Int8) {
  Optimized out;
  Graph graph = lifted(form, body, out.step);
  out.outcome = optimize(graph, shim, {numerics, held, true});
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.at(NodeId{i});
    if (!graph.alive(NodeId{i}) || std::holds_alternative<lane::View>(node.launch)) continue;
    out.launches.push_back(node.launch);
    out.covers.push_back(node.covers);
  }
  return out;
}

}  // namespace tw::fuse::testing
