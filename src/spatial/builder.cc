#include "spatial/builder.h"

#include "base/check.h"
#include "spatial/validate.h"

namespace tw::spatial {

std::vector<Step> tile_grid_steps(uint64_t rows, uint64_t cols) {
  std::vector<Step> steps;
  if (rows > 1) steps.push_back(item_y(cols));
  if (cols > 1) steps.push_back(item_x(1));
  return steps;
}

// ---- one Generic stage ----

uint32_t GenericStage::operand(BufferId page, ElemAccess map) {
  ins_.push_back(page);
  generic_.ins.push_back(map);
  return static_cast<uint32_t>(ins_.size() - 1);
}

Expr GenericStage::guarded(BufferId page, uint64_t modulus, int64_t at) {
  const auto self = static_cast<uint32_t>(ins_.size());
  return arg(operand(page, fixed(at).plus(self, 0, modulus)));
}

StageId GenericStage::write(BufferId page, Expr body) {
  generic_.body = std::move(body);
  return builder_.compute(std::move(name_), std::move(generic_), std::move(ins_), page);
}

// ---- declarations ----

TensorId Builder::tensor(std::string name, TensorRole role, uint64_t rows, uint64_t cols, Precision dtype, Init init) {
  program_.tensors.push_back({std::move(name), role, rows, cols, dtype, std::move(init)});
  return TensorId{static_cast<uint32_t>(program_.tensors.size() - 1)};
}

TensorId Builder::scalar_table(std::string name, Precision dtype, const std::vector<int64_t>& values, bool spread) {
  const uint64_t width = target_.tile.cols;
  std::vector<int64_t> table(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i)
    for (uint64_t c = 0; c < (spread ? width : 1); ++c) table[i * width + c] = values[i];
  const uint64_t cols = table.size();
  return tensor(std::move(name), TensorRole::Param, 1, cols, dtype, integer_values(std::move(table)));
}

TensorId Builder::ones(std::string name, Precision dtype) {
  return tensor(std::move(name), TensorRole::Param, target_.tile.rows, target_.tile.cols, dtype, RealInit{1.0});
}

BufferId Builder::buffer(std::string name, uint64_t page_tiles, Precision dtype, uint32_t depth) {
  program_.buffers.push_back({std::move(name), page_tiles, depth, dtype, BufferKind::Fifo});
  return BufferId{static_cast<uint32_t>(program_.buffers.size() - 1)};
}

BufferId Builder::scratch(std::string name, uint64_t page_tiles, Precision dtype, uint32_t depth) {
  const BufferId id = buffer(std::move(name), page_tiles, dtype, depth);
  program_.buffers.back().kind = BufferKind::Scratch;
  return id;
}

// ---- stages ----

StageId Builder::stage(std::string name, StageKind kind, std::vector<BufferId> ins, std::vector<BufferId> outs) {
  program_.stages.push_back({std::move(name), std::move(kind), std::move(ins), std::move(outs), level_});
  return StageId{static_cast<uint32_t>(program_.stages.size() - 1)};
}

AccessPattern Builder::pattern_of(Block block, BufferId page) const {
  TW_CHECK(block.height > 0 && page_tiles(page) % block.height == 0, "a page of {} tiles in {} rows", page_tiles(page),
           block.height);
  AccessPattern pattern;
  pattern.origin = {block.base, std::move(block.steps), block.indirect};
  pattern.block_h = block.height;
  pattern.block_w = page_tiles(page) / block.height;
  pattern.stride_h = block.stride_h;
  return pattern;
}

StageId Builder::load(std::string name, TensorId tensor, Block block, BufferId page) {
  AccessPattern pattern = pattern_of(std::move(block), page);
  std::vector<BufferId> ins;
  if (pattern.origin.indirect) ins.push_back(pattern.origin.indirect->index);
  return stage(std::move(name), Load{tensor, std::move(pattern)}, std::move(ins), {page});
}

StageId Builder::store(std::string name, BufferId page, TensorId tensor, Block block) {
  AccessPattern pattern = pattern_of(std::move(block), page);
  std::vector<BufferId> ins{page};
  if (pattern.origin.indirect) ins.push_back(pattern.origin.indirect->index);
  return stage(std::move(name), Store{tensor, std::move(pattern)}, std::move(ins), {});
}

StageId Builder::compute(std::string name, Generic generic, std::vector<BufferId> ins, BufferId out) {
  return stage(std::move(name), Compute{std::move(generic)}, std::move(ins), {out});
}

StageId Builder::matmul(std::string name, MatmulTiles shape, BufferId a, BufferId b, BufferId out) {
  return stage(std::move(name), Compute{shape}, {a, b}, {out});
}

Result<Program> Builder::finish(Section section) && {
  program_.name = std::move(section.name);
  program_.claim = std::move(section.claim);
  program_.work.items = std::move(section.items);
  program_.work.k_tiles = section.k_tiles;
  program_.work.k_trip = section.trip;
  if (section.plan) {
    program_.work.plan = *section.plan;
  } else if (const std::optional<TensorId> result = program_.result()) {
    program_.work.plan = trivial_plan(program_.work.items, grid_of(program_.at(*result), program_.tile));
  }
  program_.edges = derive_edges(program_);
  if (const std::vector<Finding> findings = validate(program_); !findings.empty())
    return to_refusal(program_, findings);
  TW_TRY_VOID(check_target(program_, target_));
  return std::move(program_);
}

}  // namespace tw::spatial
