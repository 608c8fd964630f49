#include "fuse/quantize.h"

#include <algorithm>
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
  Quantizing(Graph& graph, const Shim& shim, lane::Numerics numerics, bool fuse, std::vector<Fired>& fired)
      : graph_(graph), shim_(shim), numerics_(numerics), fuse_(fuse), fired_(fired) {}

  std::vector<lane::Planned> run() {
    if (fuse_ && lane::quantizes(numerics_)) fuse_stores();
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

  // What `launch` becomes when it quantizes its result, if the lane takes that.
  [[nodiscard]] std::optional<Launch> quantizing(Launch launch, BufferId result, bool plain) const {
    const Store store = store_of(launch);
    if (store.forms == nullptr || store.result != result) return std::nullopt;
    *store.forms = {plain, true};
    if (shim_.refuses(launch, numerics_)) return std::nullopt;
    return launch;
  }

  void set_store(NodeId id, Launch launch) {
    fired_.push_back({store_of(launch).name, graph_.at(id).covers});
    graph_.launch(id) = std::move(launch);
  }

  void quantize_store(NodeId id, BufferId result, bool plain) {
    if (auto launch = quantizing(graph_.at(id).launch, result, plain)) set_store(id, std::move(*launch));
  }

  // A table that is set row by row: every row's producer quantizes and the sets copy its bits, or none does.
  void quantize_rows(BufferId table) {
    struct Row {
      NodeId producer, set;
      Launch quantizing;
      lane::SetRow row;
    };
    const bool plain = read_plain(table);
    std::vector<Row> rows;
    for (const NodeId writer : graph_.writers(table)) {
      const auto* set = graph_.as<lane::SetRow>(writer);
      if (set == nullptr || lane::present(set->at.param) || set->cols % lane::kQuantBlock != 0) return;
      const NodeId producer = graph_.producer(set->src);
      if (!present(producer) || graph_.sole_reader(set->src) != writer) return;
      auto launch = quantizing(graph_.at(producer).launch, set->src, plain);
      if (!launch) return;
      lane::SetRow row = *set;
      row.forms = {plain, true};
      if (shim_.refuses(row, numerics_)) return;
      rows.push_back({producer, writer, std::move(*launch), row});
    }
    for (Row& row : rows) {
      set_store(row.producer, std::move(row.quantizing));
      graph_.launch(row.set) = row.row;
    }
  }

  Graph& graph_;
  const Shim& shim_;
  lane::Numerics numerics_;
  bool fuse_;
  std::vector<Fired>& fired_;
  std::unordered_set<uint32_t> quantized_;
};

}  // namespace

std::span<const std::string_view> quantizing_classes() { return kClasses; }

std::vector<lane::Planned> with_quantizations(Graph graph, const Shim& shim, lane::Numerics numerics, bool fuse,
                                              std::vector<Fired>& fired) {
  return Quantizing(graph, shim, numerics, fuse, fired).run();
}

}  // namespace tw::fuse
