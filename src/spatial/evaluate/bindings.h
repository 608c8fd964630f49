#pragma once

// The tensors of a program bound to a memory for one run, and who touched which tile in it: what makes a program whose
// values depend on the order of its items fail in every order.

#include <optional>
#include <vector>

#include "spatial/evaluate/fault.h"
#include "spatial/evaluate/memory.h"
#include "spatial/program.h"

namespace tw::spatial::evaluate {

class Bindings {
 public:
  explicit Bindings(const Program& program);

  // Starts a run. An output gets a new version; everything else is the memory's.
  Result<void> open(Memory& memory);
  // Puts the new versions in the place of the old ones.
  void commit(Memory& memory);

  [[nodiscard]] Stored& stored(TensorId tensor) { return *stored_[index(tensor)]; }
  // An item reads, or writes, a tile: what is wrong with that, if anything.
  [[nodiscard]] std::optional<FaultKind> load(TensorId tensor, uint64_t tile, uint64_t item);
  [[nodiscard]] std::optional<FaultKind> store(TensorId tensor, uint64_t tile, uint64_t item);

 private:
  // Items by number from 1; 0 is nobody, kMany several. Of this run only when the run is.
  struct Mark {
    uint64_t run = 0;
    uint32_t loaded = 0;
    uint32_t stored = 0;
  };
  static constexpr uint32_t kMany = ~uint32_t{0};
  Mark& mark(TensorId tensor, uint64_t tile);

  const Program& program_;
  std::vector<uint32_t> owner_;                  // by tensor: whose marks it shares; itself when it has none to share
  std::vector<std::vector<Mark>> marks_;         // by tensor; empty when it is only read
  std::vector<Stored*> stored_;                  // by tensor
  std::vector<std::optional<Stored>> versions_;  // by tensor: of outputs
  uint64_t run_ = 0;
};

}  // namespace tw::spatial::evaluate
