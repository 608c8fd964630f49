#pragma once

// Writes a section. Ids are handed out, block widths follow from pages, edges from the stages; what is left to go wrong
// is found by the validator in finish().
//
//   Builder b(target, accumulator);
//   const TensorId x = b.tensor("x", TensorRole::Input, 1, n, e), y = b.tensor("y", TensorRole::Output, 1, n, e);
//   const BufferId in = b.buffer("in_x", tiles, e), out = b.buffer("out", tiles, e);
//   b.load("load_x", x, {}, in);
//   auto silu_stage = b.compute("silu", flat(n));
//   const Expr v = silu_stage.read(in, at(0));
//   silu_stage.write(out, silu(v));
//   b.store("store_y", out, y, {});
//   return b.finish({.name = "silu", .items = one_item(tiles), .claim = approx("silu in bf16")});

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "spatial/items.h"
#include "spatial/program.h"

namespace tw::spatial {

// ---- addresses: Block{.steps = {item_x(8)}} is the block of a page's width at tile 8 * x ----

struct Block {
  uint64_t base = 0;
  std::vector<Step> steps;
  std::optional<IndirectTile> indirect;
  uint64_t height = 1;    // tile rows; the width is the page's tiles over it
  uint64_t stride_h = 0;  // tiles from one of them to the next
};
constexpr Step item_y(uint64_t stride) { return {LoopVar::ItemY, stride}; }
constexpr Step item_x(uint64_t stride) { return {LoopVar::ItemX, stride}; }
constexpr Step sub_h(uint64_t stride) { return {LoopVar::SubH, stride}; }
constexpr Step sub_w(uint64_t stride) { return {LoopVar::SubW, stride}; }
constexpr Step k_block(uint64_t stride) { return {LoopVar::KBlock, stride}; }
// The steps of a grid of one-tile items; an axis with one tile has none.
std::vector<Step> tile_grid_steps(uint64_t rows, uint64_t cols);

// ---- iteration spaces ----

constexpr Iter rows(uint64_t extent) { return {Axis::Row, extent, {}}; }
constexpr Iter cols(uint64_t extent) { return {Axis::Col, extent, {}}; }
constexpr Iter reduce_rows(uint64_t extent, Pool pool = Pool::Sum) { return {Axis::Row, extent, pool}; }
constexpr Iter reduce_cols(uint64_t extent, Pool pool = Pool::Sum) { return {Axis::Col, extent, pool}; }
constexpr Iter reduce_k(uint64_t extent, Pool pool = Pool::Sum) { return {Axis::K, extent, pool}; }
// [R:1 C:n]
inline std::vector<Iter> flat(uint64_t n) { return {rows(1), cols(n)}; }

class Builder;

// One Generic stage while it is written: reads number the operands, write() closes it.
class GenericStage {
 public:
  // An operand; its value in the body.
  Expr read(BufferId page, ElemAccess map) { return arg(operand(page, map)); }
  // Its number: for bounds of predicates and indices of other operands.
  uint32_t operand(BufferId page, ElemAccess map);
  // The value at a fixed element, a fault unless 0 <= value < modulus.
  Expr guarded(BufferId page, uint64_t modulus, int64_t at = 0);
  // The tile of ones that scales a reduction of reals.
  void scaler(BufferId page) { operand(page, fixed(0)); }
  StageId write(BufferId page, Expr body);

 private:
  friend class Builder;
  GenericStage(Builder& builder, std::string name, std::vector<Iter> space)
      : builder_(builder), name_(std::move(name)), generic_{std::move(space), {}, {}} {}

  Builder& builder_;
  std::string name_;
  Generic generic_;
  std::vector<BufferId> ins_;
};

// What finish() is told beside what was built.
struct Section {
  std::string name;
  std::vector<WorkItem> items;
  NumericsClaim claim;
  std::optional<BlockPlan> plan;  // absent: trivial_plan
  uint64_t k_tiles = 1;
  std::optional<Trip> trip;
};

class Builder {
 public:
  Builder(const Target& target, Precision accumulator) : target_(target) {
    program_.target = target.name;
    program_.tile = target.tile;
    program_.accumulator = accumulator;
  }

  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] Precision accumulator() const { return program_.accumulator; }

  // ---- declarations ----

  TensorId tensor(std::string name, TensorRole role, uint64_t rows, uint64_t cols, Precision dtype,
                  Init init = ExternalInit{});
  // A param of one value a tile: value i is element 0 of tile i, the rest is zero. With spread, every column of its
  // row.
  TensorId scalar_table(std::string name, Precision dtype, const std::vector<int64_t>& values, bool spread = false);
  // A param of one tile of ones, the scaler of reductions. The name must tell the precision.
  TensorId ones(std::string name, Precision dtype);

  BufferId buffer(std::string name, uint64_t page_tiles, Precision dtype, uint32_t depth = 2);
  BufferId scratch(std::string name, uint64_t page_tiles, uint32_t depth = 2) {
    return scratch(std::move(name), page_tiles, program_.accumulator, depth);
  }
  BufferId scratch(std::string name, uint64_t page_tiles, Precision dtype, uint32_t depth = 2);

  // ---- stages, in an order in which each page is written before it is read ----

  // The level of the stages declared from here on.
  void level(FoldLevel level) { level_ = level; }
  StageId load(std::string name, TensorId tensor, Block block, BufferId page);
  StageId store(std::string name, BufferId page, TensorId tensor, Block block);
  [[nodiscard]] GenericStage compute(std::string name, std::vector<Iter> space) {
    return {*this, std::move(name), std::move(space)};
  }
  StageId compute(std::string name, Generic generic, std::vector<BufferId> ins, BufferId out);
  StageId matmul(std::string name, MatmulTiles shape, BufferId a, BufferId b, BufferId out);

  // ---- questions ----

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] Precision dtype(BufferId id) const { return program_.at(id).dtype; }
  [[nodiscard]] uint64_t page_tiles(BufferId id) const { return program_.at(id).page_tiles; }
  [[nodiscard]] int64_t width(BufferId id) const { return static_cast<int64_t>(program_.width(id)); }

  // The program, checked by validate() and check_target(). Its footprint is not: see sizing.h.
  [[nodiscard]] Result<Program> finish(Section section) &&;

 private:
  friend class GenericStage;
  StageId stage(std::string name, StageKind kind, std::vector<BufferId> ins, std::vector<BufferId> outs);
  AccessPattern pattern_of(Block block, BufferId page) const;

  Target target_;
  Program program_;
  FoldLevel level_ = FoldLevel::Body;
};

}  // namespace tw::spatial
