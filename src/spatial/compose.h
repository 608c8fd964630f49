#pragma once

// The whole step: sections in order with a barrier between them, their tensors unified by name.
//
// A section boundary is a barrier: everything before it is complete before anything after it starts. A name stands for
// a chain of versions, each a storage of its own. A section that declares the name State works in place on the version
// that is current; one that declares it Output writes a new version whole and, if it reads the name too, reads the one
// before. What is carried from step to step starts the next step as the last version of this one.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spatial/program.h"

namespace tw::spatial {

enum class StorageId : uint32_t {};
constexpr uint32_t index(StorageId id) { return static_cast<uint32_t>(id); }

// Input, Param: given from outside (Param: the same for every step). State: carried from step to step. Activation:
// produced and consumed inside. Output: produced, and read by nobody inside or asked for by name.
enum class StepRole : uint8_t { Input, Param, State, Activation, Output };
std::string_view name(StepRole role);

struct Storage {
  std::string name;
  uint32_t version = 0;
  StepRole role = StepRole::Activation;
  uint64_t rows = 1;
  uint64_t cols = 1;
  Precision dtype = Precision::F32;
  // Of version 0 that no section produces: what it holds at first. External of every other.
  Init init = ExternalInit{};
  bool operator==(const Storage&) const = default;
};

struct ComposedSection {
  Program program;
  std::vector<StorageId> storages;  // by TensorId of the program
  bool operator==(const ComposedSection&) const = default;
};

// When the step is over, what `last` holds is what `first` holds in the next one.
struct CarriedStorage {
  StorageId first{};
  StorageId last{};
  bool operator==(const CarriedStorage&) const = default;
};

struct Composition {
  std::string name;
  std::string target;
  TileShape tile;
  std::vector<std::string> outputs;  // as compose() was asked
  std::vector<Storage> storages;
  std::vector<ComposedSection> sections;
  std::vector<CarriedStorage> carried;  // whose last version is another; a State updated in place is not listed

  [[nodiscard]] const Storage& at(StorageId id) const { return storages[index(id)]; }
  // The first and the last version of a name.
  [[nodiscard]] std::optional<StorageId> first(std::string_view tensor) const;
  [[nodiscard]] std::optional<StorageId> last(std::string_view tensor) const;
  bool operator==(const Composition&) const = default;
};

struct ComposeOptions {
  std::string name;
  std::vector<std::string> outputs;  // names that are results even if sections read them
};

// Refuses: no sections; sections for different targets; one name with different extents, layouts or dtypes; two
// different fills; a tensor that is read, that nobody fills and no earlier section produces; an output that no section
// produces. Linear in the sections' tensors.
Result<Composition> compose(std::vector<Program> sections, const ComposeOptions& options);

// ---- layouts ----

// A relayout between the flat and the dense layout of one rows x cols tensor.
struct RelayoutRequest {
  std::string from;
  std::string to;
  uint64_t rows = 1;  // of the dense form
  uint64_t cols = 1;
  Precision dtype = Precision::F32;
  bool to_dense = true;
  Init init = ExternalInit{};  // what `from` is declared with
  size_t section = 0;          // of the list given: the first one that reads `to`
  bool operator==(const RelayoutRequest&) const = default;
};
// The sections that do it, or their refusal (lower/relayout).
using Relayout = std::function<Result<std::vector<Program>>(const RelayoutRequest&)>;

// Makes producers and readers of one tensor agree on flat or dense: where a section reads a tensor in the other layout
// than it was first declared in or last written in, relayout sections are put before it, once for all readers until the
// tensor is written again, and it reads their result: NAME__dense or NAME__rows. Refuses a write in another layout, and
// two dense shapes.
Result<std::vector<Program>> agree_layouts(std::vector<Program> sections, const Relayout& relayout);

}  // namespace tw::spatial
