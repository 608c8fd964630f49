#include "fuse/optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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
        if (held(rule)) {
          if (options_.explain) note_held(rule);
          continue;
        }
        while (sweep(rule)) any = true;
      }
    }
    for (auto& [key, missed] : missed_) outcome_.missed.push_back(std::move(missed));
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] bool held(const Rule& rule) const {
    return std::find(options_.held.begin(), options_.held.end(), rule.name) != options_.held.end();
  }
  [[nodiscard]] bool starts(const Rule& rule, NodeId id) const {
    const uint8_t kind = graph_.kind(id);
    return kind != Graph::kGone && (rule.anchors >> kind & 1U) != 0;
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
    if (options_.explain) note(rule, id, match);
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

  // Keeps what the rule last said at the launch: a later rule may take the pattern's launches away.
  void note(const Rule& rule, NodeId id, const Match& match) {
    const std::string why = reason(match);
    if (!why.empty()) {
      missed_[{&rule, id}] = {rule.name, graph_.at(id).covers, why};
    } else if (std::holds_alternative<Rewrite>(match)) {
      missed_.erase({&rule, id});
    }
  }
  void note_held(const Rule& rule) {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      if (!starts(rule, id) || !std::holds_alternative<Rewrite>(rule.match(context_, id))) continue;
      missed_[{&rule, id}] = {rule.name, graph_.at(id).covers, "the rule is held back"};
    }
  }

  // What keeps a match from firing; empty when the pattern is not there, or when nothing does.
  [[nodiscard]] std::string reason(const Match& match) const {
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
  std::map<std::pair<const Rule*, NodeId>, Missed> missed_;
};

}  // namespace

Outcome optimize(Graph& graph, const Shim& shim, const OptimizeOptions& options) {
  return Optimizer(graph, shim, options).run();
}

}  // namespace tw::fuse
