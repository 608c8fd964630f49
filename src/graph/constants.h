#pragma once

// Where the values of a graph's Constant tensors lie.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "gguf/format.h"
#include "graph/step_graph.h"

namespace tw::graph {

// Checkpoint rows in their file format, used where they lie. Stored row r is `row_values` long and holds
//   of a Matmul's w (k x n) and of a Moe's router (d x experts): its column r (the rows of the file are the outputs);
//   of every other constant: row r of the tensor.
// `order`, when not empty, says which file row each stored row is (adjacent-pair rotations, merged and cut tensors).
struct Rows {
  gguf::Format format = gguf::Format::F32;
  const std::byte* data = nullptr;  // file row 0; stays mapped while `owner` lives
  uint64_t row_bytes = 0;
  uint64_t row_values = 0;
  uint64_t count = 0;           // stored rows
  std::vector<uint32_t> order;  // empty, or `count` file rows
  std::shared_ptr<const void> owner;

  [[nodiscard]] const std::byte* row(uint64_t r) const {
    return data + (order.empty() ? r : uint64_t{order[r]}) * row_bytes;
  }
};

// Plain values in the tensor's own shape (rows x cols, row-major): f32, or i32 for an integer tensor.
struct Values {
  std::shared_ptr<const std::vector<float>> f32;
  std::shared_ptr<const std::vector<int32_t>> i32;
};

using Constant = std::variant<Rows, Values>;

// By tensor name, so that the forms of one model share one set.
using Constants = std::unordered_map<std::string, Constant>;

}  // namespace tw::graph
