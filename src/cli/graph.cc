// tilewright graph: the step of a model as a graph.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/verb.h"
#include "graph/text.h"
#include "model/model.h"

namespace tw::cli {

namespace {

struct GraphFlags {
  std::string model, form = "decode";
  EngineFlags engine;
  bool json = false;
};

struct LoadedStep {
  model::Model model;
  graph::StepGraph graph;
};

Result<LoadedStep> load_step(const GraphFlags& flags) {
  TW_TRY(const graph::Form form, form_of(flags.form));
  TW_TRY(const gguf::Checkpoint checkpoint, open_model(flags.model));
  TW_TRY(model::Model model, model::Model::load(checkpoint, {flags.engine.context}));
  TW_TRY(graph::StepGraph graph, model.step(form));
  return LoadedStep{std::move(model), std::move(graph)};
}

nlohmann::ordered_json graph_json(const graph::StepGraph& graph) {
  nlohmann::ordered_json json{{"name", graph.name}, {"form", graph::to_text(graph.form)}};
  auto& tensors = json["tensors"] = nlohmann::ordered_json::array();
  constexpr std::string_view kRoles[] = {"param", "state", "table", "constant", "activation"};
  for (const graph::Tensor& tensor : graph.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"rows", tensor.rows},
                       {"cols", tensor.cols},
                       {"role", kRoles[static_cast<size_t>(tensor.role)]}});
  }
  auto& ops = json["ops"] = nlohmann::ordered_json::array();
  for (const graph::Op& op : graph.ops) {
    nlohmann::ordered_json operands = nlohmann::ordered_json::object();
    const auto decls = graph::operand_decls(op.spec);
    for (size_t i = 0; i < decls.size() && i < op.operands.size(); ++i) {
      if (op.operands[i] != graph::kNoTensor) operands[std::string(decls[i].name)] = graph.at(op.operands[i]).name;
    }
    ops.push_back({{"op", graph::op_name(op.spec)}, {"operands", operands}, {"result", graph.at(op.result).name}});
  }
  return json;
}

Result<int> print_graph(const GraphFlags& flags) {
  TW_TRY(const LoadedStep step, load_step(flags));
  if (flags.json) {
    print_json(graph_json(step.graph));
  } else {
    fmt::print("{}", graph::print(step.graph));
  }
  return kFine;
}

std::shared_ptr<GraphFlags> add_flags(const Verb& verb) {
  auto flags = std::make_shared<GraphFlags>();
  verb.option("MODEL", flags->model, "A GGUF checkpoint");
  verb.option("-m,--model", flags->model, "The same as MODEL");
  verb.option("--form", flags->form, "decode, chunk:M, chunk:M:all or batch:B").shows_default();
  verb.flag("--json", flags->json, "Print as JSON");
  return flags;
}

}  // namespace

Action add_graph(const Verb& verb) {
  auto flags = add_flags(verb);
  verb.option("-c,--ctx-size", flags->engine.context, "Positions a sequence can hold").shows_default();
  return [flags] { return print_graph(*flags); };
}

}  // namespace tw::cli
