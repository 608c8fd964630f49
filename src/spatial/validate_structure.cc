#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "spatial/validate_rules.h"

namespace tw::spatial {
namespace {

// Sizes above these are no sizes of a real section, and would let the arithmetic of addresses wrap.
constexpr uint64_t kMostExtent = uint64_t{1} << 40;
constexpr uint64_t kMostElements = uint64_t{1} << 50;
constexpr uint64_t kMostTiles = uint64_t{1} << 24;
constexpr uint64_t kMostDepth = 1 << 16;
constexpr uint64_t kMostTileSide = 1024;

bool replaces(const Tensor& first, const Tensor& second) {
  return !first.result() && first.role == TensorRole::Input && second.result();
}

// Whether there is a bad size among (what, value, most); adds a finding for each.
template <class About>
void check_range(Findings& out, About about, std::string_view what, uint64_t value, uint64_t most) {
  if (value < 1 || value > most) out.add("S2", about, fmt::format("{} is {}, expected 1 to {}", what, value, most));
}
void check_range(Findings& out, std::string_view what, uint64_t value, uint64_t most) {
  if (value < 1 || value > most) out.add("S2", fmt::format("{} is {}, expected 1 to {}", what, value, most));
}

void check_pattern_size(StageId id, const AccessPattern& pattern, Findings& out) {
  check_range(out, id, "the height of its block", pattern.block_h, kMostTiles);
  check_range(out, id, "the width of its block", pattern.block_w, kMostTiles);
  const auto far = [&](std::string_view what, uint64_t stride) {
    if (stride > kMostExtent)
      out.add("S2", id, fmt::format("{} is {}, expected at most {}", what, stride, kMostExtent));
  };
  far("the base of its address", pattern.origin.base);
  far("the stride of its rows", pattern.stride_h);
  far("the stride of its columns", pattern.stride_w);
  for (const Step& step : pattern.origin.steps) far("a stride of its address", step.stride);
  if (!pattern.origin.indirect) return;
  far("the stride of its index", pattern.origin.indirect->tile_stride);
  check_range(out, id, "the divisor of its index", pattern.origin.indirect->elems_per_tile, kMostExtent);
}

}  // namespace

void check_names(const Program& program, Findings& out) {
  if (program.name.empty()) out.add("S1", "the program has no name");
  if (program.target.empty()) out.add("S1", "the program names no target");
  std::unordered_map<std::string_view, uint32_t> seen;
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    if (tensor.name.empty()) out.add("S1", TensorId{i}, "has no name");
    const auto [first, fresh] = seen.emplace(tensor.name, i);
    if (fresh) continue;
    if (!replaces(program.tensors[first->second], tensor)) out.add("S1", TensorId{i}, "is declared a second time");
    first->second = i;  // a third declaration follows a result, which nothing may
  }
  const auto check = [&](const auto& all, auto make) {
    std::unordered_map<std::string_view, uint32_t> names;
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].name.empty()) out.add("S1", make(i), "has no name");
      if (!names.emplace(all[i].name, i).second) out.add("S1", make(i), "has the name of another");
    }
  };
  check(program.buffers, [](uint32_t i) { return BufferId{i}; });
  check(program.stages, [](uint32_t i) { return StageId{i}; });
}

void check_sizes(const Program& program, Findings& out) {
  check_range(out, "the height of a tile", program.tile.rows, kMostTileSide);
  check_range(out, "the width of a tile", program.tile.cols, kMostTileSide);
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    check_range(out, TensorId{i}, "the number of rows", tensor.rows, kMostExtent);
    check_range(out, TensorId{i}, "the number of columns", tensor.cols, kMostExtent);
    if (tensor.rows > 0 && tensor.cols > kMostElements / tensor.rows)
      out.add("S2", TensorId{i},
              fmt::format("has {} x {} elements, expected at most {}", tensor.rows, tensor.cols, kMostElements));
  }
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    check_range(out, BufferId{i}, "the tiles of a page", program.buffers[i].page_tiles, kMostTiles);
    check_range(out, BufferId{i}, "the depth", program.buffers[i].depth, kMostDepth);
  }
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const Stage& stage = program.stages[i];
    if (const AccessPattern* pattern = stage.pattern()) check_pattern_size(StageId{i}, *pattern, out);
    if (const Generic* generic = stage.generic())
      for (const Iter& iter : generic->iters) check_range(out, StageId{i}, "an extent", iter.extent, kMostExtent);
  }
  const BlockPlan& plan = program.work.plan;
  for (const auto& [what, value] : {std::pair{"the plan's rows an item", plan.per_site_m},
                                    {"the plan's columns an item", plan.per_site_n},
                                    {"the plan's grid height", plan.grid_m},
                                    {"the plan's grid width", plan.grid_n},
                                    {"the plan's blocks", plan.num_blocks},
                                    {"the plan's block depth", plan.block_k},
                                    {"the plan's sub-block height", plan.block_m},
                                    {"the plan's sub-block width", plan.block_n},
                                    {"the contraction", program.work.k_tiles}})
    check_range(out, what, value, uint64_t{1} << 30);
}

void check_ids(const Program& program, Findings& out) {
  const auto tensor_known = [&](TensorId id) { return index(id) < program.tensors.size(); };
  const auto buffer_known = [&](BufferId id) { return index(id) < program.buffers.size(); };
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const Stage& stage = program.stages[i];
    for (const std::vector<BufferId>* list : {&stage.ins, &stage.outs})
      for (const BufferId id : *list)
        if (!buffer_known(id))
          out.add("S3", StageId{i},
                  fmt::format("has buffer {}, the program has {}", index(id), program.buffers.size()));
    if (const auto tensor = stage.tensor(); tensor && !tensor_known(*tensor))
      out.add("S3", StageId{i},
              fmt::format("moves tensor {}, the program has {}", index(*tensor), program.tensors.size()));
    if (const AccessPattern* pattern = stage.pattern(); pattern && pattern->origin.indirect)
      if (const BufferId page = pattern->origin.indirect->index; !buffer_known(page))
        out.add("S3", StageId{i},
                fmt::format("is indexed by buffer {}, the program has {}", index(page), program.buffers.size()));
    const bool indirect = stage.pattern() && stage.pattern()->origin.indirect;
    const size_t ins = stage.load() ? (indirect ? 1 : 0) : stage.store() ? (indirect ? 2 : 1) : stage.ins.size();
    const size_t outs = stage.store() ? 0 : 1;
    if (stage.ins.size() != ins || stage.outs.size() != outs)
      out.add("S4", StageId{i},
              fmt::format("reads {} pages and writes {}, expected {} and {}", stage.ins.size(), stage.outs.size(), ins,
                          outs));
    else if (indirect && stage.ins.back() != stage.pattern()->origin.indirect->index)
      out.add("S4", StageId{i}, "does not read the page that its address is indexed by");
    if (stage.matmul() && stage.ins.size() != 2)
      out.add("S4", StageId{i}, fmt::format("multiplies {} pages, expected 2", stage.ins.size()));
  }
  if (program.work.k_trip && !tensor_known(program.work.k_trip->tensor))
    out.add("S3", fmt::format("the block count is of tensor {}, the program has {}", index(program.work.k_trip->tensor),
                              program.tensors.size()));
}

void check_inits(const Program& program, Findings& out) {
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    const auto check_count = [&](const auto& values) {
      const size_t count = values.values ? values.values->size() : 0;
      if (count != tensor.size())
        out.add("S5", TensorId{i}, fmt::format("has {} values, expected {}", count, tensor.size()));
    };
    const auto* integers = std::get_if<IntegerValues>(&tensor.init);
    const auto* reals = std::get_if<RealValues>(&tensor.init);
    if (integers) check_count(*integers);
    if (reals) check_count(*reals);
    const bool real = reals || std::holds_alternative<RealInit>(tensor.init);
    if (real && is_integer(tensor.dtype))
      out.add("S5", TensorId{i}, fmt::format("is {} and starts from reals", name(tensor.dtype)));
    if (!is_integer(tensor.dtype)) continue;
    const int64_t most = int_max(tensor.dtype);
    const auto check_value = [&](int64_t value) {
      if (value >= -most - 1 && value <= most) return true;
      out.add("S5", TensorId{i}, fmt::format("is {} and starts from {}", name(tensor.dtype), value));
      return false;
    };
    if (const auto* one = std::get_if<IntegerInit>(&tensor.init)) check_value(one->value);
    if (integers && integers->values)
      (void)std::all_of(integers->values->begin(), integers->values->end(), check_value);
  }
}

void check_work(const Program& program, Findings& out) {
  const Work& work = program.work;
  if (work.items.empty()) out.add("S25", "the program has no items");
  const std::optional<TensorId> result = program.result();
  if (!result) {
    out.add("S25", "no tensor is an output or state");
    return;
  }
  const TileGrid grid = grid_of(program.at(*result), program.tile);
  const auto inside = [](uint64_t first, uint64_t count, uint64_t extent) {
    return count >= 1 && first < extent && count <= extent - first;
  };
  for (size_t i = 0; i < work.items.size(); ++i) {
    const TileRect& rect = work.items[i].out;
    if (!inside(rect.row, rect.rows, grid.rows) || !inside(rect.col, rect.cols, grid.cols))
      out.add("S25", *result,
              fmt::format("item {} owns {} x {} tiles at ({}, {}) of {} x {}", i, rect.rows, rect.cols, rect.row,
                          rect.col, grid.rows, grid.cols));
  }
  const BlockPlan& plan = work.plan;
  if (plan.grid_m * plan.grid_n != work.items.size())
    out.add("S26",
            fmt::format("the plan has {} x {} items, the program {}", plan.grid_m, plan.grid_n, work.items.size()));
  if (plan.per_site_m % plan.block_m != 0 || plan.per_site_n % plan.block_n != 0)
    out.add("S26", fmt::format("an item owns {} x {} tiles, which sub-blocks of {} x {} do not divide", plan.per_site_m,
                               plan.per_site_n, plan.block_m, plan.block_n));
}

}  // namespace tw::spatial
