#include "spatial/lower/flat_build.h"

#include <fmt/format.h>

#include "base/check.h"
#include "spatial/lower/column_blocks.h"

namespace tw::spatial::lower {

uint32_t PointwiseStage::operand(BufferId page, ElemAccess map) {
  pages_.push_back(page);
  maps_.push_back(map);
  magnitudes_.push_back(0);
  local_.push_back(false);
  return static_cast<uint32_t>(pages_.size() - 1);
}

uint32_t PointwiseStage::index(BufferId page, ElemAccess map, uint64_t magnitude) {
  TW_CHECK(map.of(Axis::Col) == 0, "an index of stage {} follows the column", name_);
  const uint32_t number = operand(page, map);
  magnitudes_[number] = magnitude;
  return number;
}

uint32_t PointwiseStage::local(BufferId page) {
  const uint32_t number = operand(page, at(0));
  local_[number] = true;
  return number;
}

Result<FlatBuild> FlatBuild::open(const OpView& op, Precision precision) {
  TW_TRY(const Precision accumulator, accumulator_for(op.target, precision, op.subject()));
  return FlatBuild(op, precision, accumulator);
}

BufferId FlatBuild::input(const OpTensor& operand, InputOptions options) {
  if (const auto at = inputs_.find(operand.name); at != inputs_.end()) return at->second;
  const Precision dtype = options.precision.value_or(operand.stored(precision_));
  const uint64_t n = options.elements == 0 ? operand.size() : options.elements;
  const TensorId tensor = builder_.tensor(operand.name, operand.read_role(), 1, operand.size(), dtype,
                                          init_of(operand.fill, operand.size()));
  const BufferId page = builder_.buffer("in_" + operand.name, target().tiles(n), dtype, options.depth);
  builder_.load("load_" + operand.name, tensor, {.base = options.first_tile}, page);
  inputs_.emplace(operand.name, page);
  return page;
}

BufferId FlatBuild::ones(const std::string& name) {
  const BufferId page = builder_.buffer("in_" + name, 1, precision_);
  builder_.load("load_" + name, builder_.ones(name, precision_), {}, page);
  return page;
}

BufferId FlatBuild::scratch(const std::string& name, uint64_t elements, uint32_t depth) {
  return builder_.scratch(name, target().tiles(elements), depth);
}

TensorId FlatBuild::declare_result(uint64_t n) {
  return builder_.tensor(result_.name, TensorRole::Output, 1, n, result_.stored(precision_));
}

BufferId FlatBuild::result_page(uint64_t n) {
  elements_ = n;
  out_ = builder_.buffer("out", target().tiles(n), result_.stored(precision_));
  return out_;
}

Result<Program> FlatBuild::finish(std::string name, NumericsClaim claim) && {
  TW_CHECK(elements_ > 0, "section {} has no result page", name);
  builder_.store("store_" + result_.name, out_, declare_result(elements_), {});
  return std::move(builder_).finish(
      {.name = std::move(name), .items = one_item(target().tiles(elements_)), .claim = std::move(claim)});
}

BufferId FlatBuild::columns(const std::string& name, uint64_t n, Precision dtype) {
  const uint64_t tiles = target().wide(n) ? ColumnBlocks(target(), n).block_tiles() : target().tiles(n);
  return builder_.scratch(name, tiles, dtype, 1);
}

Result<Program> FlatBuild::pointwise(PointwiseStage stage, uint64_t n, std::string name, NumericsClaim claim) && {
  return std::move(*this).pointwise(std::vector<PointwiseStage>{std::move(stage)}, n, std::move(name),
                                    std::move(claim));
}

Result<Program> FlatBuild::pointwise(std::vector<PointwiseStage> chain, uint64_t n, std::string name,
                                     NumericsClaim claim) && {
  if (!target().wide(n)) {
    const BufferId out = result_page(n);
    for (PointwiseStage& stage : chain) {
      if (stage.scaler_) stage.operand(*stage.scaler_, fixed(0));
      Generic generic{stage.space(n), std::move(stage.maps_), std::move(stage.body_)};
      builder_.compute(std::move(stage.name_), std::move(generic), std::move(stage.pages_), stage.page_.value_or(out));
    }
    return std::move(*this).finish(std::move(name), std::move(claim));
  }
  const ColumnBlocks blocks(target(), n);
  const BufferId out = builder_.buffer("out", blocks.block_tiles(), result_.stored(precision_));
  for (PointwiseStage& stage : chain) {
    const BufferId page = stage.page_.value_or(out);
    TW_TRY_VOID(blocks.write(builder_, std::move(stage), page, result_.name));
  }
  builder_.store("store_" + result_.name, out, declare_result(n), {.steps = {item_x(blocks.block_tiles())}});
  return std::move(builder_).finish({.name = std::move(name), .items = blocks.items(), .claim = std::move(claim)});
}

}  // namespace tw::spatial::lower
