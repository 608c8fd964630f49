#include "spatial/lower/dense_build.h"

#include "spatial/lower/column_blocks.h"

namespace tw::spatial::lower {

Result<DenseBuild> DenseBuild::open(const OpView& op, Precision precision, uint32_t pages) {
  TW_TRY(const Precision accumulator, accumulator_for(op.target, precision, op.subject()));
  return DenseBuild(op, precision, accumulator, pages);
}

BufferId DenseBuild::input(const OpTensor& operand) {
  if (const auto at = inputs_.find(operand.name); at != inputs_.end()) return at->second;
  const Precision dtype = operand.stored(precision_);
  const uint64_t tiles = builder_.target().tiles(operand.cols);
  const TensorId tensor = builder_.tensor(operand.name, operand.read_role(), operand.rows, operand.cols, dtype,
                                          init_of(operand.fill, operand.size()));
  const BufferId page = builder_.buffer("in_" + operand.name, tiles, dtype, pages_);
  builder_.load("load_" + operand.name, tensor, {.steps = {item_y(tiles)}}, page);
  inputs_.emplace(operand.name, page);
  return page;
}

Result<Program> DenseBuild::pointwise(PointwiseStage stage, std::string name, NumericsClaim claim) && {
  const Target& target = builder_.target();
  const Precision stored = result_.stored(precision_);
  const ColumnBlocks blocks(target, result_.cols, result_.rows);
  stage.rows_ = rows(target.tile.rows);
  const BufferId out = builder_.buffer("out", blocks.block_tiles(), stored, pages_);
  if (target.wide(result_.cols)) {
    TW_TRY_VOID(blocks.write(builder_, std::move(stage), out, result_.name));
  } else {
    Generic generic{stage.space(result_.cols), std::move(stage.maps_), std::move(stage.body_)};
    builder_.compute(std::move(stage.name_), std::move(generic), std::move(stage.pages_), out);
  }
  const TensorId result = builder_.tensor(result_.name, TensorRole::Output, result_.rows, result_.cols, stored);
  const Step by_row = item_y(target.tiles(result_.cols)), by_block = item_x(blocks.block_tiles());
  builder_.store("store_" + result_.name, out, result, {.steps = {by_row, by_block}});
  return std::move(builder_).finish({.name = std::move(name), .items = blocks.items(), .claim = std::move(claim)});
}

}  // namespace tw::spatial::lower
