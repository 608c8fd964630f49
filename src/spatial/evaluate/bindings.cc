#include "spatial/evaluate/bindings.h"

#include <string_view>
#include <unordered_map>

namespace tw::spatial::evaluate {

Bindings::Bindings(const Program& program)
    : program_(program),
      owner_(program.tensors.size()),
      marks_(program.tensors.size()),
      stored_(program.tensors.size()),
      versions_(program.tensors.size()) {
  std::unordered_map<std::string_view, uint32_t> states;
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    if (tensor.result()) marks_[i].resize(grid_of(tensor, program.tile).tiles());
    if (tensor.role == TensorRole::State) states.emplace(tensor.name, i);
  }
  // An input that is declared again as state is the state.
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const auto state = states.find(program.tensors[i].name);
    owner_[i] = state == states.end() ? i : state->second;
  }
}

Result<void> Bindings::open(Memory& memory) {
  ++run_;
  for (uint32_t i = 0; i < program_.tensors.size(); ++i) {
    const Tensor& tensor = program_.tensors[i];
    if (tensor.role == TensorRole::Output) {
      if (memory.find(tensor.name)) TW_TRY_VOID(memory.declare(tensor));
      versions_[i] = make_stored(tensor, program_.tile);
      stored_[i] = &*versions_[i];
    } else {
      TW_TRY(stored_[i], memory.declare(tensor));
    }
  }
  return {};
}

void Bindings::commit(Memory& memory) {
  for (std::optional<Stored>& version : versions_)
    if (version) memory.replace(std::move(*version));
}

Bindings::Mark& Bindings::mark(TensorId tensor, uint64_t tile) {
  Mark& mark = marks_[owner_[index(tensor)]][tile];
  if (mark.run != run_) mark = {run_, 0, 0};
  return mark;
}

std::optional<FaultKind> Bindings::load(TensorId tensor, uint64_t tile, uint64_t item) {
  if (!stored(tensor).written[tile]) return FaultKind::UnwrittenRead;
  if (marks_[owner_[index(tensor)]].empty()) return std::nullopt;
  Mark& touched = mark(tensor, tile);
  if (touched.stored != 0) return FaultKind::StaleRead;
  const auto self = static_cast<uint32_t>(item + 1);
  touched.loaded = touched.loaded == 0 || touched.loaded == self ? self : kMany;
  return std::nullopt;
}

std::optional<FaultKind> Bindings::store(TensorId tensor, uint64_t tile, uint64_t item) {
  Mark& touched = mark(tensor, tile);
  const auto self = static_cast<uint32_t>(item + 1);
  if (touched.loaded != 0 && touched.loaded != self) return FaultKind::StaleRead;
  const bool again = program_.at(tensor).role == TensorRole::State && touched.stored == self;
  if (touched.stored != 0 && !again) return FaultKind::WriteConflict;
  touched.stored = self;
  stored(tensor).written[tile] = true;
  return std::nullopt;
}

}  // namespace tw::spatial::evaluate
