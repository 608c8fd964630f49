#pragma once

// The constants of a model in the storage that the kernels read: product weights packed in panels (pack.h), tables of
// checkpoint rows where they lie, plain values as f32. Every form of a step shares one store.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "graph/constants.h"
#include "lane/cpu/large_memory.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/pool.h"
#include "lane/schedule.h"

namespace tw::lane::cpu {

// What a caller hears of the preparation while it goes on, and how it ends it.
struct Preparation {
  // With the bytes done and the bytes of all; on the calling thread.
  std::function<void(uint64_t done, uint64_t total)> progress;
  // With bytes of constants that will not be read again for this, so that their pages can be let go; on any thread.
  std::function<void(std::span<const std::byte>)> packed;
  // When set, the preparation ends early with a refusal of kind Interrupted.
  const std::atomic<bool>* interrupted = nullptr;
};

class WeightStore {
 public:
  explicit WeightStore(const graph::Constants& constants) : constants_(&constants) {}

  // Prepares what `schedule` reads and the store does not hold yet, packing in parallel on `pool`. On a refusal the
  // store holds what it held before.
  Result<void> prepare(const Schedule& schedule, Pool& pool, const Preparation& preparation = {});

  // What a constant was prepared as. Require that prepare has seen a schedule that reads it so.
  [[nodiscard]] const Packed& product(std::string_view constant) const;  // of a product, an expert table, a router
  [[nodiscard]] const Packed& heads(std::string_view constant) const;    // of a per-head product
  [[nodiscard]] const graph::Rows& rows(std::string_view constant) const;
  [[nodiscard]] const float* values(std::string_view constant) const;

  [[nodiscard]] uint64_t packed_bytes() const { return packed_bytes_; }

 private:
  const graph::Constant& constant(std::string_view name) const;

  const graph::Constants* constants_;
  std::vector<LargeMemory> memory_;  // one block a preparation
  std::unordered_map<std::string, Packed> products_, heads_;
  std::unordered_map<std::string, std::vector<float>> widened_;  // rows that are read as plain values
  uint64_t packed_bytes_ = 0;
};

}  // namespace tw::lane::cpu
