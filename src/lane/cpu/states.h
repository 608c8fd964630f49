#pragma once

// The carried state of a number of sequences. Slot b of every state lies b times its bytes into one array, so that a
// batch over neighbouring slots can read it as one array. The states of a single sequence lie together in huge pages
// when all of them are small: every step reads them, and few pages are few table entries. Others lie in pages of the
// usual size, which take memory as positions are used.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "lane/cpu/large_memory.h"
#include "lane/schedule.h"

namespace tw::lane::cpu {

class States {
 public:
  explicit States(uint32_t slots) : slots_(slots) {}

  // Makes room for every state of `schedule` (by base name, so that all forms of a step share it), zeroed and
  // untouched, so that pages take memory only once they are used. Refuses when the machine has no room.
  Result<void> prepare(const Schedule& schedule);

  struct State {
    std::string name;
    uint64_t bytes = 0;  // of one slot, rounded up to whole cache lines
    std::byte* data = nullptr;
    bool together = false;  // in a block that the one sequence has for all
  };
  // The state that a buffer of a schedule names. Requires that prepare has seen it.
  [[nodiscard]] const State& of(const Buffer& buffer) const;
  [[nodiscard]] uint32_t slots() const { return slots_; }

  void zero(uint32_t slot);
  // Every byte of a slot becomes `byte`.
  void fill(uint32_t slot, std::byte byte);
  // Every state of a slot in order of first appearance.
  [[nodiscard]] std::vector<std::byte> bytes(uint32_t slot) const;

 private:
  Result<void> place_together(const std::vector<size_t>& made, uint64_t all);
  Result<void> place_apart(const std::vector<size_t>& made);
  [[nodiscard]] Refusal no_room(const std::string& name, uint64_t bytes) const;

  uint32_t slots_;
  std::deque<State> states_;                   // programs keep pointers to its items
  std::vector<LargeMemory> blocks_;            // of one sequence
  std::vector<std::shared_ptr<void>> memory_;  // of several
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace tw::lane::cpu
