#include <fmt/format.h>

#include <iterator>
#include <unordered_map>

#include "spatial/compose.h"

namespace tw::spatial {
namespace {

// The layout a name is in, and the name of its twin in the other one while that holds the same values.
struct Known {
  uint64_t rows = 1;
  uint64_t cols = 1;
  Init init;
  std::string twin;
  std::string section;
};

class Agreement {
 public:
  explicit Agreement(const Relayout& relayout) : relayout_(relayout) {}

  Result<std::vector<Program>> run(std::vector<Program> sections) {
    for (Program& section : sections) {
      for (Tensor& tensor : section.tensors)
        if (!tensor.result()) TW_TRY_VOID(agree_read(section, tensor));
      for (const Tensor& tensor : section.tensors)
        if (tensor.result()) TW_TRY_VOID(note_write(section, tensor));
      out_.push_back(std::move(section));
      ++number_;
    }
    return std::move(out_);
  }

 private:
  Result<void> agree_read(const Program& section, Tensor& tensor) {
    const auto [at, fresh] = known_.try_emplace(tensor.name);
    Known& known = at->second;
    if (fresh) known = {tensor.rows, tensor.cols, tensor.init, {}, section.name};
    if (known.rows == tensor.rows && known.cols == tensor.cols) return {};
    if (!bridges(known, tensor)) return conflict(section, tensor, known);
    if (known.twin.empty()) TW_TRY_VOID(bridge(tensor, known));
    tensor.name = known.twin;
    tensor.init = ExternalInit{};
    return {};
  }

  // A write in the layout that is known, or the first one; it makes the twin stale.
  Result<void> note_write(const Program& section, const Tensor& tensor) {
    const auto [at, fresh] = known_.try_emplace(tensor.name);
    Known& known = at->second;
    if (!fresh && (known.rows != tensor.rows || known.cols != tensor.cols)) return conflict(section, tensor, known);
    known = {tensor.rows, tensor.cols, ExternalInit{}, {}, section.name};
    return {};
  }

  // Flat and dense forms of one size.
  static bool bridges(const Known& known, const Tensor& tensor) {
    return known.rows * known.cols == tensor.size() && (known.rows == 1 || tensor.rows == 1);
  }

  Result<void> bridge(const Tensor& tensor, Known& known) {
    const bool to_dense = known.rows == 1;
    RelayoutRequest request{.from = tensor.name,
                            .to = unused_name(tensor.name, to_dense ? "dense" : "rows"),
                            .rows = to_dense ? tensor.rows : known.rows,
                            .cols = to_dense ? tensor.cols : known.cols,
                            .dtype = tensor.dtype,
                            .to_dense = to_dense,
                            .init = known.init,
                            .section = number_};
    TW_TRY(std::vector<Program> sections, relayout_(request));
    known.twin = std::move(request.to);
    std::move(sections.begin(), sections.end(), std::back_inserter(out_));
    return {};
  }

  // A twin of a later version of the tensor has a name of its own: other values under one name would be a new version.
  std::string unused_name(const std::string& base, std::string_view layout) {
    const uint32_t count = ++twins_[fmt::format("{}__{}", base, layout)];
    return count == 1 ? fmt::format("{}__{}", base, layout) : fmt::format("{}__{}{}", base, layout, count);
  }

  static Refusal conflict(const Program& section, const Tensor& tensor, const Known& known) {
    return refuse(
        RefusalKind::Conflict, tensor.name,
        fmt::format("is {}x{} in section {} and {} as {}x{} in section {}", known.rows, known.cols, known.section,
                    tensor.result() ? "written" : "read", tensor.rows, tensor.cols, section.name),
        "Sections must agree on the layout that a tensor is written in.");
  }

  const Relayout& relayout_;
  std::unordered_map<std::string, Known> known_;
  std::unordered_map<std::string, uint32_t> twins_;
  size_t number_ = 0;  // of the section that is looked at
  std::vector<Program> out_;
};

}  // namespace

Result<std::vector<Program>> agree_layouts(std::vector<Program> sections, const Relayout& relayout) {
  return Agreement(relayout).run(std::move(sections));
}

}  // namespace tw::spatial
