#pragma once

// What a Program holds; shared by its compiler (binder.cc) and its runner (program.cc).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lane/cpu/program.h"

namespace tw::lane::cpu {

// Zeroed bytes at a cache line's boundary, in huge pages where they fill one: the rows of a big step lie on more small
// pages than a core keeps the places of.
struct Aligned {
  explicit Aligned(uint64_t bytes = 0);
  [[nodiscard]] std::byte* get() const { return data_.get(); }
  [[nodiscard]] uint64_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  uint64_t bytes_ = 0;
};

// An argument that points into carried state: rewritten when the sequence moves to another slot.
struct StatePointer {
  void** field = nullptr;
  const States::State* state = nullptr;
  uint32_t sequence = 0;
  uint64_t offset = 0;  // bytes
};

struct Program::Data {
  Schedule schedule;
  uint32_t threads = 1;
  std::vector<Call> calls;
  std::vector<std::shared_ptr<void>> args;
  std::vector<StatePointer> state_pointers;
  Aligned arena;
  Aligned shared;                // results between the kernels of one launch
  std::vector<Aligned> scratch;  // one a thread
  std::unique_ptr<Turn[]> turns;
  int32_t* tokens = nullptr;
  struct SequencePlaces {
    int32_t* position = nullptr;
    const float* logits = nullptr;
    uint64_t logits_size = 0;
    const int32_t* next = nullptr;
    uint64_t next_size = 0;
  };
  std::vector<SequencePlaces> sequences;
  std::vector<uint32_t> slots;  // of each sequence; kernels over several sequences read it
};

}  // namespace tw::lane::cpu
