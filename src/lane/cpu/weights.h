#pragma once

// The constants of a model in the storage that the kernels read: product weights packed in panels (pack.h), tables of
// checkpoint rows where they lie, plain values as f32. Every form of a step shares one store.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "graph/constants.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/pool.h"
#include "lane/schedule.h"

namespace tw::lane::cpu {

class WeightStore {
 public:
  explicit WeightStore(const graph::Constants& constants) : constants_(&constants) {}

  // Prepares what `schedule` reads and the store does not hold yet, packing in parallel on `pool`. `progress` is called
  // with the bytes done and all of this call's; `packed` after a checkpoint tensor was packed, so that its pages can be
  // let go.
  Result<void> prepare(const Schedule& schedule, Pool& pool,
                       const std::function<void(uint64_t done, uint64_t total)>& progress = {},
                       const std::function<void(const graph::Rows&)>& packed = {});

  // What a constant was prepared as. Require that prepare has seen a schedule that reads it so.
  [[nodiscard]] const Packed& product(std::string_view constant) const;  // of a product, an expert table, a router
  [[nodiscard]] const Packed& heads(std::string_view constant) const;    // of a per-head product
  [[nodiscard]] const graph::Rows& rows(std::string_view constant) const;
  [[nodiscard]] const float* values(std::string_view constant) const;

  [[nodiscard]] uint64_t packed_bytes() const { return packed_bytes_; }

 private:
  struct Wanted;
  struct Held {
    Packed shape;
    std::unique_ptr<std::byte, void (*)(std::byte*)> bytes{nullptr, nullptr};
  };

  const graph::Constant& constant(std::string_view name) const;
  Result<void> pack_one(const Wanted& wanted, Pool& pool);

  const graph::Constants* constants_;
  std::unordered_map<std::string, Held> products_, heads_;
  std::unordered_map<std::string, std::vector<float>> widened_;  // rows that are read as plain values
  uint64_t packed_bytes_ = 0;
};

}  // namespace tw::lane::cpu
