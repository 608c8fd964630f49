#pragma once

// What the evaluation of one op sees: its operands as matrices, and its result.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/step_graph.h"

namespace tw::graph {

// A matrix of doubles, row-major; T is double or const double.
template <class T>
struct MatrixOf {
  T* data = nullptr;
  uint64_t rows = 0;
  uint64_t cols = 0;

  T& operator()(uint64_t r, uint64_t c) const { return data[r * cols + c]; }
  [[nodiscard]] std::span<T> row(uint64_t r) const { return {data + r * cols, cols}; }
  // Unit u of row r, when a row is cut into units of `width`.
  [[nodiscard]] std::span<T> unit(uint64_t r, uint64_t u, uint64_t width) const {
    return {data + r * cols + u * width, width};
  }
  [[nodiscard]] std::span<T> all() const { return {data, rows * cols}; }
};
using Matrix = MatrixOf<const double>;
using MutableMatrix = MatrixOf<double>;

class Call {
 public:
  // `values[i]`: those of operand i, null where absent; `updated`: again those of the operand that is updated, if any;
  // `out`: zeros of the result's size, of SetRows null.
  Call(const StepGraph& graph, const Op& op, std::vector<const double*> values, double* updated, double* out)
      : graph_(graph), op_(op), values_(std::move(values)), updated_(updated), out_(out) {}

  [[nodiscard]] bool has(std::string_view operand) const;
  // Requires the operand to be present.
  [[nodiscard]] Matrix operator[](std::string_view operand) const;
  // An operand that is declared to be updated.
  [[nodiscard]] MutableMatrix update(std::string_view operand) const;
  [[nodiscard]] MutableMatrix out() const;
  [[nodiscard]] bool integers() const { return graph_.at(op_.result).element == Element::I32; }

  // Item `i` of an index operand, counted from 1, checked to be one of 1 to `last`.
  [[nodiscard]] Result<uint64_t> item(std::string_view operand, uint64_t i, uint64_t last) const;
  // The item of an optional index operand, or `otherwise` when it is absent (checked alike).
  [[nodiscard]] Result<uint64_t> item_or(std::string_view operand, uint64_t otherwise, uint64_t last) const;
  // Refuses about this op's result.
  [[nodiscard]] Refusal refuse_result(RefusalKind kind, std::string reason) const;

 private:
  [[nodiscard]] size_t position(std::string_view operand) const;

  const StepGraph& graph_;
  const Op& op_;
  std::vector<const double*> values_;
  double* updated_;
  double* out_;
};

// ---- one function an op ----

Result<void> evaluate_op(const Matmul& op, Call& call);
Result<void> evaluate_op(const HeadMatmul& op, Call& call);
Result<void> evaluate_op(const Elementwise& op, Call& call);
Result<void> evaluate_op(const RowBroadcast& op, Call& call);
Result<void> evaluate_op(const Scale& op, Call& call);
Result<void> evaluate_op(const Activate& op, Call& call);
Result<void> evaluate_op(const Softcap& op, Call& call);
Result<void> evaluate_op(const IntRequant& op, Call& call);
Result<void> evaluate_op(const IntClamp& op, Call& call);
Result<void> evaluate_op(const Transpose& op, Call& call);
Result<void> evaluate_op(const HeadSlice& op, Call& call);
Result<void> evaluate_op(const Join& op, Call& call);
Result<void> evaluate_op(const RowGather& op, Call& call);
Result<void> evaluate_op(const RowsGather& op, Call& call);
Result<void> evaluate_op(const SetRows& op, Call& call);
Result<void> evaluate_op(const ArgMax& op, Call& call);
Result<void> evaluate_op(const RowNorm& op, Call& call);
Result<void> evaluate_op(const Softmax& op, Call& call);
Result<void> evaluate_op(const L2Norm& op, Call& call);
Result<void> evaluate_op(const Rope& op, Call& call);
Result<void> evaluate_op(const Attention& op, Call& call);
Result<void> evaluate_op(const FullAttention& op, Call& call);
Result<void> evaluate_op(const LutAttention& op, Call& call);
Result<void> evaluate_op(const CausalConv& op, Call& call);
Result<void> evaluate_op(const Decay& op, Call& call);
Result<void> evaluate_op(const GatedDelta& op, Call& call);
Result<void> evaluate_op(const Moe& op, Call& call);

}  // namespace tw::graph
