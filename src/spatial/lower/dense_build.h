#pragma once

// A pointwise section over the columns of dense tensors: every row of the result is made alike from the same row of the
// operands, a tile row of each an item. A result row that does not fit a page is cut into blocks of columns, and every
// item then still loads its tile row of each operand whole.

#include <map>
#include <string>

#include "spatial/builder.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

class DenseBuild {
 public:
  // A section whose activations are stored at `precision`, with `pages` pages in each queue.
  static Result<DenseBuild> open(const OpView& op, Precision precision, uint32_t pages);

  // The page of the item's tile row of the operand; that of an operand that is there already.
  BufferId input(const OpTensor& operand);
  // Result column c of every row from column c + shift of the page.
  Expr read(PointwiseStage& stage, BufferId page, int64_t shift) const {
    return stage.read(page, map3(shift, builder_.width(page), 1));
  }

  // Closes the section with a stage over the columns of the op's result.
  Result<Program> pointwise(PointwiseStage stage, std::string name, NumericsClaim claim) &&;

 private:
  DenseBuild(const OpView& op, Precision precision, Precision accumulator, uint32_t pages)
      : builder_(op.target, accumulator), precision_(precision), pages_(pages), result_(op.result) {}

  Builder builder_;
  Precision precision_;
  uint32_t pages_;
  OpTensor result_;
  std::map<std::string, BufferId> inputs_;
};

}  // namespace tw::spatial::lower
