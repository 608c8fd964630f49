#pragma once

// Cases of attention: random queries, keys and values, and what differs from plain decoding.

#include <cstdint>
#include <optional>

#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower::testing {

struct AttentionSetting {
  uint64_t rows = 1;
  uint64_t heads = 2;
  uint64_t kv_heads = 1;
  uint64_t key_width = 4;
  uint64_t value_width = 0;  // 0: as the key
  uint64_t cached = 5;
  std::optional<int64_t> position{};  // bound when the section runs, unless `literal`
  bool literal = false;
  graph::Window window{};
  float softcap = 0;
  bool sinks = false;
  double sink = 0;  // the middle of the sinks
  float scale = 0.5F;
};
OpCase attention(const AttentionSetting& setting, uint64_t seed);
OpCase full_attention(uint64_t rows, uint64_t heads, uint64_t width, uint64_t seed);
// A constant one-element index.
CaseOperand literal_index(std::string name, int64_t value);

graph::Window sliding(uint32_t size);
graph::Window chunked(uint32_t size);

}  // namespace tw::spatial::lower::testing
