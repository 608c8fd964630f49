#pragma once

// The flat section, which most small forms are: operands as flat rows, each loaded whole, a chain of stages, one result
// stored. One item, unless the result does not fit a page: then a pointwise section runs an item for each block of
// result columns, and every item still loads every operand whole.

#include <map>
#include <string>
#include <vector>

#include "spatial/builder.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// A pointwise stage in result columns: maps and predicates as if one item computed the whole row. In a chain of them
// each but the last writes a page of FlatBuild::columns(), which those after it read as local().
class PointwiseStage {
 public:
  explicit PointwiseStage(std::string name) : name_(std::move(name)) {}

  Expr read(BufferId page, ElemAccess map) { return arg(operand(page, map)); }
  // Its number, for bounds of predicates and indices of maps.
  uint32_t operand(BufferId page, ElemAccess map);
  // An operand that bounds columns or is an index: no value of it has a magnitude above `magnitude`. Its map must not
  // follow the column.
  uint32_t index(BufferId page, ElemAccess map, uint64_t magnitude);
  // The number of a page that an earlier stage of the chain wrote: it holds the columns that this stage computes.
  uint32_t local(BufferId page);
  void body(Expr expr) { body_ = std::move(expr); }
  // Sums the body over the axis Row, `extent` of them, into each column. `scaler`: the tile of ones of a sum of reals.
  void sum_rows(uint64_t extent, std::optional<BufferId> scaler = {}) {
    rows_ = reduce_rows(extent);
    scaler_ = scaler;
  }
  void into(BufferId page) { page_ = page; }

 private:
  friend class FlatBuild;
  friend class DenseBuild;
  friend class ColumnBlocks;
  std::string name_;
  std::vector<BufferId> pages_;
  std::vector<ElemAccess> maps_;
  std::vector<uint64_t> magnitudes_;  // by operand; 0 of those that are no index
  std::vector<bool> local_;           // by operand
  Expr body_;
  std::optional<Iter> rows_;  // absent: one
  std::optional<BufferId> scaler_;
  std::optional<BufferId> page_;  // absent: the result's

  [[nodiscard]] std::vector<Iter> space(uint64_t n) const { return {rows_.value_or(rows(1)), cols(n)}; }
};

class FlatBuild {
 public:
  // A section whose activations are stored at `precision` and whose scratch has its accumulator.
  static Result<FlatBuild> open(const OpView& op, Precision precision);

  Builder& builder() { return builder_; }
  [[nodiscard]] const Target& target() const { return builder_.target(); }
  [[nodiscard]] Precision precision() const { return precision_; }

  struct InputOptions {
    std::optional<Precision> precision;  // else the operand's own, else the section's
    uint32_t depth = 2;
    uint64_t first_tile = 0;  // a slice of the row: from this tile on ...
    uint64_t elements = 0;    // ... so many elements; 0: all
  };
  // The operand's page: tensor, buffer in_NAME, load load_NAME. The page of an operand that is there already.
  BufferId input(const OpTensor& operand, InputOptions options);
  BufferId input(const OpTensor& operand) { return input(operand, InputOptions{}); }
  // The page of a tile of ones at the section's precision, for reductions.
  BufferId ones(const std::string& name);
  // T(elements) tiles on the accumulation path.
  BufferId scratch(const std::string& name, uint64_t elements, uint32_t depth = 2);

  // A page on the accumulation path for the columns of a result of n that one item computes: all, or when wide(n) a
  // block of them.
  BufferId columns(const std::string& name, uint64_t n) { return columns(name, n, builder_.accumulator()); }
  BufferId columns(const std::string& name, uint64_t n, Precision dtype);

  // Closes the section with a stage, or a chain of them, over the n columns of the result: one item, or when wide(n)
  // one a block of columns.
  Result<Program> pointwise(PointwiseStage stage, uint64_t n, std::string name, NumericsClaim claim) &&;
  Result<Program> pointwise(std::vector<PointwiseStage> chain, uint64_t n, std::string name, NumericsClaim claim) &&;
  // The page that the last stage of a chain writes: n elements of the result.
  BufferId result_page(uint64_t n);
  // Closes a section of one item whose stages wrote result_page().
  Result<Program> finish(std::string name, NumericsClaim claim) &&;

 private:
  FlatBuild(const OpView& op, Precision precision, Precision accumulator)
      : builder_(op.target, accumulator), precision_(precision), result_(op.result) {}
  TensorId declare_result(uint64_t n);

  Builder builder_;
  Precision precision_;
  OpTensor result_;
  std::map<std::string, BufferId> inputs_;
  BufferId out_{};
  uint64_t elements_ = 0;
};

}  // namespace tw::spatial::lower
