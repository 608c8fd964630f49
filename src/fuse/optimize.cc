#include "fuse/optimize.h"

#include <fmt/format.h>

#include <algorithm>

#include "fuse/rules.h"

namespace tw::fuse {

namespace {

class Optimizer {
 public:
  Optimizer(Graph& graph, const Shim& shim, const OptimizeOptions& options)
      : graph_(graph), shim_(shim), options_(options), context_{graph, options.numerics, shim} {}

  Outcome run() {
    for (bool any = true; any;) {
      any = false;
      for (const Rule& rule : rules()) {
        if (held(rule)) continue;
        while (sweep(rule)) any = true;
      }
    }
    if (options_.explain) explain();
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] bool held(const Rule& rule) const {
    return std::find(options_.held.begin(), options_.held.end(), rule.name) != options_.held.end();
  }
  [[nodiscard]] bool starts(const Rule& rule, NodeId id) const {
    return graph_.alive(id) && (rule.anchors >> graph_.at(id).launch.index() & 1U) != 0;
  }

  bool sweep(const Rule& rule) {
    bool any = false;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      while (starts(rule, id) && fire(rule, id)) any = true;
    }
    return any;
  }

  bool fire(const Rule& rule, NodeId id) {
    Match match = rule.match(context_, id);
    auto* rewrite = std::get_if<Rewrite>(&match);
    if (rewrite == nullptr || graph_.check(*rewrite) || refusal(*rewrite)) return false;
    outcome_.fired.push_back({rule.name, graph_.apply(std::move(*rewrite))});
    return true;
  }

  [[nodiscard]] std::optional<std::string> refusal(const Rewrite& rewrite) const {
    for (const auto& [node, launch] : rewrite.become) {
      if (auto why = shim_.refuses(launch, options_.numerics)) return why;
    }
    return std::nullopt;
  }

  // Nothing fires any more: what each rule says at each launch it starts from.
  void explain() {
    for (const Rule& rule : rules()) {
      for (uint32_t i = 0; i < graph_.size(); ++i) {
        if (!starts(rule, NodeId{i})) continue;
        std::string why = held(rule) ? "the rule is held back" : reason(rule, NodeId{i});
        if (!why.empty()) outcome_.missed.push_back({rule.name, graph_.at(NodeId{i}).covers, std::move(why)});
      }
    }
  }

  [[nodiscard]] std::string reason(const Rule& rule, NodeId id) const {
    const Match match = rule.match(context_, id);
    if (const auto* found = std::get_if<Miss>(&match)) return text(*found);
    const auto& rewrite = std::get<Rewrite>(match);
    if (const auto found = graph_.check(rewrite)) return text(*found);
    return refusal(rewrite).value_or("");
  }

  [[nodiscard]] std::string text(const Miss& found) const {
    if (found.why == nullptr) return {};
    if (!lane::present(found.about)) return found.why;
    return fmt::format("{} ({})", found.why, graph_.tensor(found.about).name);
  }

  Graph& graph_;
  const Shim& shim_;
  const OptimizeOptions& options_;
  Context context_;
  Outcome outcome_;
};

}  // namespace

Outcome optimize(Graph& graph, const Shim& shim, const OptimizeOptions& options) {
  return Optimizer(graph, shim, options).run();
}

}  // namespace tw::fuse
