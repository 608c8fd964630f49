#pragma once

// The placed constants of a model, with the shape each has in a step graph, and the ways a checkpoint's tensors are
// placed: rows where they lie in the file (the big matrices), or plain f32 values (norms, biases, small matrices).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "graph/constants.h"

namespace tw::model {

struct Extent {
  uint32_t rows = 0;
  uint32_t cols = 0;
};

struct Weights {
  graph::Constants constants;
  std::map<std::string, Extent, std::less<>> extents;
};

// A run of rows of a file tensor.
struct RowRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

// Requires of every function: the file tensor is there with the shape asked for (check_tensors ran).
class Placer {
 public:
  explicit Placer(const gguf::Checkpoint& checkpoint);

  [[nodiscard]] bool has(std::string_view tensor) const { return checkpoint_->find_tensor(tensor) != nullptr; }

  // The file and the tensor, for messages.
  [[nodiscard]] std::string subject(std::string_view tensor) const;

  // A product's matrix (k x n) of the tensor's n rows, or of `range` or `order` of them.
  void matrix(const std::string& name, std::string_view tensor);
  void matrix(const std::string& name, std::string_view tensor, RowRange range);
  void matrix(const std::string& name, std::string_view tensor, std::vector<uint32_t> order);
  // A table (rows x row length) whose rows are gathered or belong to experts.
  void table(const std::string& name, std::string_view tensor);
  void table(const std::string& name, std::string_view tensor, std::vector<uint32_t> order);

  // f32 values, widened from the file's format: the tensor's own values as one row, or those of `order`.
  void vector(const std::string& name, std::string_view tensor);
  void vector(const std::string& name, std::string_view tensor, const std::vector<uint32_t>& order);
  // A product's matrix as values: k x n, column c being the file's row order[c].
  void matrix_values(const std::string& name, std::string_view tensor, const std::vector<uint32_t>& order);
  // The columns `range` of the transpose: rows of the file become columns.
  void transposed(const std::string& name, std::string_view tensor, RowRange range);
  void values(const std::string& name, Extent extent, std::vector<float> values);

  // The tensor's values, widened.
  [[nodiscard]] std::vector<float> widened(std::string_view tensor) const;

  // Makes take() give the refusal: a value that placing found to be unfit.
  void refuse_later(Refusal refusal);
  [[nodiscard]] Result<Weights> take() &&;

 private:
  [[nodiscard]] const gguf::TensorInfo& info(std::string_view tensor) const;
  void place(const std::string& name, Extent extent, graph::Constant constant);
  [[nodiscard]] graph::Rows rows_of(const gguf::TensorInfo& tensor, RowRange range) const;

  std::shared_ptr<const gguf::Checkpoint> checkpoint_;  // keeps the mapping alive for the placed rows
  Weights weights_;
  std::optional<Refusal> refusal_;
};

// The order 0 .. count-1, from `first` on.
std::vector<uint32_t> ascending(uint32_t first, uint32_t count);

}  // namespace tw::model
