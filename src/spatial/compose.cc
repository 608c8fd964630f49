#include "spatial/compose.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>
#include <unordered_set>

namespace tw::spatial {
namespace {

constexpr std::array<std::string_view, 5> kRoleNames{"input", "param", "state", "activation", "output"};

bool external(const Init& init) { return std::holds_alternative<ExternalInit>(init); }

// What the composition knows of a name while it walks the sections.
struct Chain {
  std::vector<StorageId> versions;
  bool param = false;       // a section declares it so
  bool whole = false;       // the first version is an output of a section
  bool produced = false;    // the first version is written by a section, not given
  bool written = false;     // by any section
  bool read_after = false;  // the current version is read after a section wrote it
  std::string first_section;
};

class Composer {
 public:
  explicit Composer(const ComposeOptions& options) : options_(options) {}

  Result<Composition> run(std::vector<Program> sections) {
    if (sections.empty()) return refuse(RefusalKind::Usage, options_.name, "has no sections");
    out_.name = options_.name;
    out_.outputs = options_.outputs;
    out_.target = sections.front().target;
    out_.tile = sections.front().tile;
    for (Program& section : sections) TW_TRY_VOID(add(std::move(section)));
    for (const std::string& output : options_.outputs)
      if (const auto at = chains_.find(output); at == chains_.end() || !at->second.written)
        return refuse(RefusalKind::Missing, output,
                      fmt::format("is an output of {} that no section produces", out_.name));
    TW_TRY_VOID(check_filled());
    assign_roles();
    return std::move(out_);
  }

 private:
  Result<void> add(Program section) {
    if (section.target != out_.target || section.tile != out_.tile)
      return refuse(
          RefusalKind::Conflict, section.name,
          fmt::format("was lowered for target {}, the sections before it for {}", section.target, out_.target));
    std::vector<StorageId> storages(section.tensors.size());
    // Reads first: a section that reads and rewrites a name reads the version before.
    for (const bool whole : {false, true})
      for (size_t i = 0; i < section.tensors.size(); ++i) {
        const Tensor& tensor = section.tensors[i];
        if ((tensor.role == TensorRole::Output) != whole) continue;
        TW_TRY(storages[i], bind(section, tensor));
      }
    out_.sections.push_back({std::move(section), std::move(storages)});
    return {};
  }

  Result<StorageId> bind(const Program& section, const Tensor& tensor) {
    const auto [at, fresh] = chains_.try_emplace(tensor.name);
    Chain& chain = at->second;
    if (fresh) {
      chain.first_section = section.name;
      order_.push_back(&*at);
    } else {
      TW_TRY_VOID(check_agrees(section, tensor, chain));
    }
    const bool whole = tensor.role == TensorRole::Output;
    if (fresh || whole) {
      chain.versions.push_back(new_storage(tensor, static_cast<uint32_t>(chain.versions.size())));
      if (fresh) chain.whole = whole;
      if (fresh) chain.produced = whole || (tensor.role == TensorRole::State && external(tensor.init));
    }
    const StorageId current = chain.versions.back();
    if (!whole) TW_TRY_VOID(read(section, tensor, chain));
    if (tensor.result()) {
      chain.written = true;
      chain.read_after = false;
    }
    chain.param = chain.param || tensor.role == TensorRole::Param;
    return current;
  }

  StorageId new_storage(const Tensor& tensor, uint32_t version) {
    out_.storages.push_back({tensor.name, version, StepRole::Activation, tensor.rows, tensor.cols, tensor.dtype, {}});
    Storage& storage = out_.storages.back();
    storage.init = tensor.role == TensorRole::Output ? Init{ExternalInit{}} : tensor.init;
    return StorageId{static_cast<uint32_t>(out_.storages.size() - 1)};
  }

  Result<void> check_agrees(const Program& section, const Tensor& tensor, const Chain& chain) const {
    const Storage& known = out_.at(chain.versions.front());
    if (known.rows == tensor.rows && known.cols == tensor.cols && known.dtype == tensor.dtype) return {};
    return refuse(
        RefusalKind::Conflict, tensor.name,
        fmt::format("is {}x{} {} in section {} and {}x{} {} in section {}", known.rows, known.cols, name(known.dtype),
                    chain.first_section, tensor.rows, tensor.cols, name(tensor.dtype), section.name));
  }

  // A declaration that is read, or updated in place: its fill must agree with the ones before.
  Result<void> read(const Program& section, const Tensor& tensor, Chain& chain) {
    if (chain.written) chain.read_after = true;
    if (external(tensor.init) || chain.whole) return {};
    chain.produced = false;  // there is something to update
    Init& init = out_.storages[index(chain.versions.front())].init;
    if (external(init)) init = tensor.init;
    if (init == tensor.init) return {};
    return refuse(
        RefusalKind::Conflict, tensor.name,
        fmt::format("has one fill in section {} and another in section {}", chain.first_section, section.name),
        "Give constants of different contents different names.");
  }

  Result<void> check_filled() const {
    for (const auto* entry : order_) {
      const auto& [tensor, chain] = *entry;
      if (chain.produced || !external(out_.at(chain.versions.front()).init)) continue;
      return refuse(RefusalKind::Missing, tensor,
                    fmt::format("is read by section {}, but no section before it produces it and nobody fills it",
                                chain.first_section));
    }
    return {};
  }

  void assign_roles() {
    const std::unordered_set<std::string_view> asked_for(options_.outputs.begin(), options_.outputs.end());
    for (const auto* entry : order_) {
      const auto& [tensor, chain] = *entry;
      const bool asked = asked_for.contains(tensor);
      StepRole role = chain.param ? StepRole::Param : StepRole::Input;
      if (chain.produced) role = asked || !chain.read_after ? StepRole::Output : StepRole::Activation;
      if (!chain.produced && chain.written) role = StepRole::State;
      for (const StorageId id : chain.versions) out_.storages[index(id)].role = role;
      if (role == StepRole::State && chain.versions.size() > 1)
        out_.carried.push_back({chain.versions.front(), chain.versions.back()});
    }
  }

  const ComposeOptions& options_;
  Composition out_;
  std::unordered_map<std::string, Chain> chains_;
  std::vector<const std::pair<const std::string, Chain>*> order_;
};

}  // namespace

std::string_view name(StepRole role) { return kRoleNames.at(static_cast<size_t>(role)); }

std::optional<StorageId> Composition::first(std::string_view tensor) const {
  for (uint32_t i = 0; i < storages.size(); ++i)
    if (storages[i].name == tensor) return StorageId{i};
  return std::nullopt;
}

std::optional<StorageId> Composition::last(std::string_view tensor) const {
  for (uint32_t i = static_cast<uint32_t>(storages.size()); i-- > 0;)
    if (storages[i].name == tensor) return StorageId{i};
  return std::nullopt;
}

Result<Composition> compose(std::vector<Program> sections, const ComposeOptions& options) {
  return Composer(options).run(std::move(sections));
}

}  // namespace tw::spatial
