#include "fuse/quantize.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "lane/uses.h"

namespace tw::fuse {

namespace {

constexpr std::string_view kClasses[] = {"NormQuant",      "AddNormQuant", "GluActMulQuant", "ElementwiseQuant",
                                         "GdnOutputQuant", "GemvQuant",    "AttnOutputQuant"};

using lane::BufferId;
using lane::Launch;
using lane::OutForms;
using lane::TouchForm;
using lane::Use;

// The store of a launch that can quantize, and the class of such a launch.
struct Store {
  OutForms* forms = nullptr;
  BufferId result = lane::kNoBuffer;
  std::string_view name;
};

Store store_of(Launch& launch) {
  if (auto* fold = std::get_if<lane::Fold>(&launch)) return store_of(fold->parts.back());
  if (auto* l = std::get_if<lane::Norm>(&launch)) {
    if (l->into) return {};
    return {&l->forms, l->out, lane::present(l->add) ? "AddNormQuant" : "NormQuant"};
  }
  if (auto* l = std::get_if<lane::SwiGlu>(&launch)) return {&l->forms, l->out, "GluActMulQuant"};
  if (auto* l = std::get_if<lane::GemvGlu>(&launch)) return {&l->forms, l->out, "GluActMulQuant"};
  if (auto* l = std::get_if<lane::Binary>(&launch)) {
    return {&l->forms, l->out, l->gate ? "GluActMulQuant" : "ElementwiseQuant"};
  }
  if (auto* l = std::get_if<lane::Attention>(&launch)) {
    return {&l->forms, l->out, lane::present(l->gate) ? "GluActMulQuant" : "AttnOutputQuant"};
  }
  if (auto* l = std::get_if<lane::Delta>(&launch)) return {&l->forms, l->out, "GdnOutputQuant"};
  if (auto* l = std::get_if<lane::Gemv>(&launch)) {
    if (!l->y.own()) return {};
    return {&l->out, l->y.buf, "GemvQuant"};
  }
  return {};
}

class Quantizing {
 public:
  Quantizing(Graph& graph, const Shim& shim, const QuantizeOptions& options, Outcome& outcome)
      : graph_(graph), shim_(shim), options_(options), numerics_(options.numerics), outcome_(outcome) {}

  std::vector<lane::Planned> run() {
    if (options_.fuse && lane::quantizes(numerics_)) fuse_stores();
    std::vector<lane::Planned> out;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      if (!graph_.alive(id)) continue;
      const std::vector<Use> all = lane::uses(graph_.at(id).launch, numerics_);
      for (const Use& use : all) {
        if (!use.reads || use.writes || use.form != TouchForm::Quantized) continue;
        if (!quantized_.insert(lane::index(use.buffer)).second) continue;
        out.push_back({lane::Quant{use.buffer, graph_.tensor(use.buffer).size()}, {}});
      }
      note_writes(all);
      out.push_back({graph_.at(id).launch, graph_.at(id).covers});
    }
    return out;
  }

 private:
  // A quantized form is there once it is written, and stale once more of the plain form is.
  void note_writes(const std::vector<Use>& all) {
    for (const Use& use : all) {
      if (use.writes && use.form == TouchForm::Plain) quantized_.erase(lane::index(use.buffer));
    }
    for (const Use& use : all) {
      if (use.writes && use.form == TouchForm::Quantized) quantized_.insert(lane::index(use.buffer));
    }
  }

  void fuse_stores() {
    std::unordered_set<uint32_t> seen;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (!graph_.alive(NodeId{i})) continue;
      for (const Use& use : lane::uses(graph_.at(NodeId{i}).launch, numerics_)) {
        if (!use.reads || use.form != TouchForm::Quantized || !seen.insert(lane::index(use.buffer)).second) continue;
        const NodeId producer = graph_.producer(use.buffer);
        if (present(producer) && graph_.as<lane::SetRow>(producer) == nullptr) {
          quantize_store(producer, use.buffer, read_plain(use.buffer));
        } else {
          quantize_rows(use.buffer);
        }
      }
    }
  }

  [[nodiscard]] bool read_plain(BufferId id) const {
    if (graph_.outlives(id)) return true;
    const std::vector<NodeId> readers = graph_.readers(id);
    return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const std::vector<Use> all = lane::uses(graph_.at(reader).launch, numerics_);
      return std::any_of(all.begin(), all.end(), [&](const Use& use) {
        return use.reads && use.form == TouchForm::Plain && graph_.root(use.buffer) == graph_.root(id);
      });
    });
  }

  // A launch that quantizes its result as well or only, or why it does not.
  struct Quantized {
    std::optional<Launch> launch;
    std::string why;
  };
  [[nodiscard]] Quantized quantizing(Launch launch, BufferId result, bool plain) const {
    const Store store = store_of(launch);
    if (store.forms == nullptr || store.result != result) return {{}, "no launch of its kind quantizes what it stores"};
    *store.forms = {plain, true};
    if (auto why = shim_.refuses(launch, numerics_)) return {{}, std::move(*why)};
    return {std::move(launch), {}};
  }

  void set_store(NodeId id, Launch launch) {
    outcome_.fired.push_back({store_of(launch).name, graph_.at(id).covers});
    graph_.launch(id) = std::move(launch);
  }
  void miss(NodeId id, std::string why) {
    if (options_.explain) outcome_.missed.push_back({"fuse_quant", graph_.at(id).covers, std::move(why)});
  }

  void quantize_store(NodeId id, BufferId result, bool plain) {
    Quantized quantized = quantizing(graph_.at(id).launch, result, plain);
    if (quantized.launch) {
      set_store(id, std::move(*quantized.launch));
    } else {
      miss(id, std::move(quantized.why));
    }
  }

  // A table that is set row by row: every row's producer quantizes and the sets copy its bits, or none does.
  void quantize_rows(BufferId table) {
    const bool plain = read_plain(table);
    std::vector<Row> rows;
    for (const NodeId writer : graph_.writers(table)) {
      std::string why;
      auto row = quantizing_row(writer, plain, why);
      if (!row) return miss(writer, std::move(why));
      rows.push_back(std::move(*row));
    }
    for (Row& row : rows) {
      set_store(row.producer, std::move(row.quantizing));
      graph_.launch(row.writer) = row.set;
    }
  }

  struct Row {
    NodeId producer, writer;
    Launch quantizing;
    lane::SetRow set;
  };
  std::optional<Row> quantizing_row(NodeId writer, bool plain, std::string& why) const {
    const auto* set = graph_.as<lane::SetRow>(writer);
    const NodeId producer = set != nullptr ? graph_.producer(set->src) : kNoNode;
    if (!present(producer) || lane::present(set->at.param) || graph_.sole_reader(set->src) != writer) {
      why = "the table is not set by rows that are read for that alone";
      return std::nullopt;
    }
    if (set->cols % lane::kQuantBlock != 0) {
      why = "the table's rows are no whole blocks";
      return std::nullopt;
    }
    lane::SetRow row = *set;
    row.forms = {plain, true};
    Quantized quantized = quantizing(graph_.at(producer).launch, set->src, plain);
    if (quantized.launch) quantized.why = shim_.refuses(row, numerics_).value_or("");
    if (quantized.launch && quantized.why.empty()) {
      return Row{producer, writer, std::move(*quantized.launch), row};
    }
    why = std::move(quantized.why);
    return std::nullopt;
  }

  Graph& graph_;
  const Shim& shim_;
  const QuantizeOptions& options_;
  lane::Numerics numerics_;
  Outcome& outcome_;
  std::unordered_set<uint32_t> quantized_;
};

}  // namespace

std::span<const std::string_view> quantizing_classes() { return kClasses; }

bool is_firing_of(std::string_view firing, std::string_view rule) {
  return firing == rule ||
         (rule == "fuse_quant" && std::find(std::begin(kClasses), std::end(kClasses), firing) != std::end(kClasses));
}

std::vector<lane::Planned> with_quantizations(Graph graph, const Shim& shim, const QuantizeOptions& options,
                                              Outcome& outcome) {
  return Quantizing(graph, shim, options, outcome).run();
}

}  // namespace tw::fuse
