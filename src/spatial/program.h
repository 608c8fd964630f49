#pragma once

// A spatial program: a small dataflow graph of stages over buffers of tile pages, run once a work item. The lowering of
// an op is one program (a section) or several in order. docs/spatial-ir.md is the definition.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spatial/ids.h"
#include "spatial/stage.h"
#include "spatial/target.h"
#include "spatial/tensor.h"

namespace tw::spatial {

// Fifo: a queue between engines. Scratch: on the accumulation path, written and read by compute stages alone, and read
// by several of them if need be.
enum class BufferKind : uint8_t { Fifo, Scratch };

// A page of page_tiles tiles is one row-major plane of tile.rows rows by page_tiles * tile.cols columns, its tiles side
// by side in load order.
struct Buffer {
  std::string name;
  uint64_t page_tiles = 1;
  uint32_t depth = 2;  // pages it holds
  Precision dtype = Precision::F32;
  BufferKind kind = BufferKind::Fifo;
  bool operator==(const Buffer&) const = default;
};

// A hand-over through a buffer that two stages synchronise on.
struct Edge {
  StageId producer{};
  BufferId buffer{};
  StageId consumer{};
  bool operator==(const Edge&) const = default;
};

// In tiles of the result: the first tensor declared Output or State.
struct TileRect {
  uint64_t row = 0;
  uint64_t col = 0;
  uint64_t rows = 1;
  uint64_t cols = 1;
  bool operator==(const TileRect&) const = default;
};

// y and x are what ItemY and ItemX stand for; they need not be the rectangle's.
struct WorkItem {
  uint64_t y = 0;
  uint64_t x = 0;
  TileRect out;
  bool operator==(const WorkItem&) const = default;
};

// How the items share the work: an item owns per_site_m x per_site_n tiles of the result and walks them in sub-blocks
// of block_m x block_n, each a fold over num_blocks blocks of block_k tiles of the contraction.
struct BlockPlan {
  uint64_t per_site_m = 1;
  uint64_t per_site_n = 1;
  uint64_t grid_m = 1;  // items in each direction
  uint64_t grid_n = 1;
  uint64_t num_blocks = 1;
  uint64_t block_k = 1;
  uint64_t block_m = 1;
  uint64_t block_n = 1;

  [[nodiscard]] uint64_t sub_h() const { return per_site_m / block_m; }
  [[nodiscard]] uint64_t sub_w() const { return per_site_n / block_n; }
  [[nodiscard]] uint64_t sub_blocks() const { return sub_h() * sub_w(); }
  bool operator==(const BlockPlan&) const = default;
};

// Block count of a fold from data: ceil((P + bias) / per), P = element `elem` of the tensor, read before the section
// runs and refused unless low <= P <= high. The greatest count is the plan's num_blocks.
struct Trip {
  TensorId tensor{};
  uint64_t elem = 0;
  int64_t low = 0;
  int64_t high = 0;
  int64_t bias = 0;
  uint64_t per = 1;

  [[nodiscard]] uint64_t count(int64_t value) const;
  bool operator==(const Trip&) const = default;
};

struct Work {
  std::vector<WorkItem> items;
  BlockPlan plan;
  uint64_t k_tiles = 1;  // tiles of the contraction
  std::optional<Trip> k_trip;
  bool operator==(const Work&) const = default;
};

// What a section promises of its numbers. Exact: the reference, bit for bit. Else near it, for the reason given.
struct NumericsClaim {
  bool exact = false;
  std::string reason;  // "<what> in <precision>"; empty when exact
  bool operator==(const NumericsClaim&) const = default;
};
inline NumericsClaim exact() { return {true, {}}; }
inline NumericsClaim approx(std::string reason) { return {false, std::move(reason)}; }

struct Program {
  std::string name;
  std::string target;  // what it was lowered for
  TileShape tile;
  Precision accumulator = Precision::F32;
  NumericsClaim claim;
  std::vector<Tensor> tensors;
  std::vector<Buffer> buffers;
  std::vector<Stage> stages;  // in an order in which each page is written before it is read
  std::vector<Edge> edges;    // derive_edges() of the stages
  Work work;

  [[nodiscard]] const Tensor& at(TensorId id) const { return tensors[index(id)]; }
  [[nodiscard]] const Buffer& at(BufferId id) const { return buffers[index(id)]; }
  [[nodiscard]] const Stage& at(StageId id) const { return stages[index(id)]; }
  // Columns of a page as a plane.
  [[nodiscard]] uint64_t width(BufferId id) const { return at(id).page_tiles * tile.cols; }
  [[nodiscard]] uint64_t page_bytes(BufferId id) const;
  // The first tensor declared Output or State: what the items' rectangles are about.
  [[nodiscard]] std::optional<TensorId> result() const;
  // What refusals are about: the result's name, or the program's when it has none.
  [[nodiscard]] const std::string& subject() const;
  [[nodiscard]] bool fold() const { return work.plan.num_blocks > 1 || work.k_trip.has_value(); }
  bool operator==(const Program&) const = default;
};

// ---- looking ----

// Local memory of one site: the sum over buffers of depth * page, and the most there is when it is more than that.
uint64_t footprint(const Program& program);
inline bool fits(const Program& program, const Target& target) { return footprint(program) <= target.local_bytes; }

// Whether the stage computes in integers (see expr.h). Requires a valid program.
bool computes_integers(const Program& program, const Stage& stage);

// The shapes of the compute stages, by name: "Generic", "MatmulTiles".
std::set<std::string_view> compute_shapes(const Program& program);
// Whether there is no other shape than these two.
bool is_closed_algebra(const std::set<std::string_view>& shapes);
bool is_closed_algebra(const Program& program);

// From each writer of a buffer to the first stage declared after it that reads the buffer.
std::vector<Edge> derive_edges(const Program& program);

// What a target must offer to run the program.
std::set<Capability> required_capabilities(const Program& program);

}  // namespace tw::spatial
