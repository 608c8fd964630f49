#include <algorithm>
#include <tuple>

#include "spatial/certify/checks.h"

namespace tw::spatial {
namespace {

struct Owned {
  uint64_t tile = 0;
  uint64_t item = 0;
  bool operator==(const Owned&) const = default;
  bool operator<(const Owned& other) const { return std::tie(tile, item) < std::tie(other.tile, other.item); }
};

// Most sections list their tiles in order as it is.
void sort_by_tile(std::vector<Owned>& all) {
  if (!std::is_sorted(all.begin(), all.end())) std::sort(all.begin(), all.end());
}

std::string place(uint64_t tile, TileGrid grid) {
  return fmt::format("tile {} at ({}, {})", tile, tile / grid.cols, tile % grid.cols);
}

// The first tile below `tiles` that a sorted list without doubles does not name.
uint64_t first_missing(const std::vector<Owned>& sorted) {
  uint64_t next = 0;
  for (const Owned& owned : sorted) {
    if (owned.tile != next) break;
    ++next;
  }
  return next;
}

bool inside(const TileRect& rect, TileGrid grid) {
  return rect.row < grid.rows && rect.rows <= grid.rows - rect.row && rect.col < grid.cols &&
         rect.cols <= grid.cols - rect.col;
}

// ---- the rectangles of the items ----

// Sorted; nothing when there are more than can be walked. Rectangles outside are the validator's to report.
std::optional<std::vector<Owned>> owned_by_rectangle(const Program& program, TileGrid grid) {
  uint64_t total = 0;
  for (const WorkItem& item : program.work.items) {
    if (inside(item.out, grid)) total += item.out.rows * item.out.cols;
    if (total > kMostTilesWalked) return std::nullopt;
  }
  std::vector<Owned> all;
  all.reserve(total);
  for (uint64_t i = 0; i < program.work.items.size(); ++i) {
    const TileRect& rect = program.work.items[i].out;
    if (!inside(rect, grid)) continue;
    for (uint64_t r = 0; r < rect.rows; ++r)
      for (uint64_t c = 0; c < rect.cols; ++c) all.push_back({(rect.row + r) * grid.cols + rect.col + c, i});
  }
  sort_by_tile(all);
  return all;
}

// Doubles and gaps of a sorted list that is to name every tile of the tensor once.
bool covers_once(TensorId tensor, TileGrid grid, const std::vector<Owned>& all, std::string_view how, Report& report) {
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i].tile == all[i - 1].tile) {
      report.add_item(tensor, all[i].item,
                      fmt::format("{} is {} by item {} too", place(all[i].tile, grid), how, all[i - 1].item));
      return false;
    }
  if (all.size() == grid.tiles()) return true;
  report.add(tensor, fmt::format("{} of its {} tiles are {}; {} is not", all.size(), grid.tiles(), how,
                                 place(first_missing(all), grid)));
  return false;
}

// ---- the stores ----

using Stores = std::vector<StageId>;

// By tensor, the stages that store it.
std::vector<Stores> stores_by_tensor(const Program& program) {
  std::vector<Stores> stores(program.tensors.size());
  for (uint32_t i = 0; i < program.stages.size(); ++i)
    if (const Store* store = program.stages[i].store()) stores[index(store->tensor)].push_back(StageId{i});
  return stores;
}

// Sorted; nothing when an address is out of reach or there are more tiles than can be walked.
std::optional<std::vector<Owned>> written_by_items(const CheckContext& context, const Stores& stores) {
  const Program& program = context.program;
  uint64_t total = 0;
  for (const StageId id : stores) {
    const uint64_t tiles = tiles_of_items(program, *program.at(id).pattern());
    if (context.outside[index(id)] || tiles > kMostTilesWalked) return std::nullopt;
    total += tiles;
    if (total > kMostTilesWalked) return std::nullopt;
  }
  std::vector<Owned> all;
  all.reserve(total);
  for (const StageId id : stores)
    for (uint64_t i = 0; i < program.work.items.size(); ++i)
      each_tile(program, *program.at(id).pattern(), program.work.items[i], [&](uint64_t tile, uint64_t, uint64_t) {
        all.push_back({tile, i});
      });
  sort_by_tile(all);
  return all;
}

void check_counted_store(const Program& program, const Stores& stores, Report& report) {
  for (const StageId id : stores)
    if (program.work.k_trip && runs(program, program.at(id)).per_block)
      report.add(id, "stores an output once a block, and the number of blocks is data");
}

// Items write what they own.
void check_agreement(const Program& program, TensorId result, const std::vector<Owned>& owned,
                     const std::vector<Owned>& written, Report& report) {
  const auto [own, write] = std::mismatch(owned.begin(), owned.end(), written.begin(), written.end());
  if (own == owned.end() && write == written.end()) return;
  const TileGrid grid = grid_of(program.at(result), program.tile);
  if (write == written.end() || (own != owned.end() && *own < *write)) {
    report.add_item(result, own->item, fmt::format("owns {} and does not store it", place(own->tile, grid)));
  } else {
    report.add_item(result, write->item, fmt::format("stores {}, which it does not own", place(write->tile, grid)));
  }
}

void check_output(const CheckContext& context, TensorId id, const Stores& stores,
                  const std::optional<std::vector<Owned>>& written, Report& report) {
  const Program& program = context.program;
  const TileGrid grid = grid_of(program.at(id), program.tile);
  if (stores.empty()) {
    report.add(id, "is an output, and no stage stores it");
    return;
  }
  check_counted_store(program, stores, report);
  const bool once = !written || covers_once(id, grid, *written, "stored", report);
  if (program.result() != id) return;
  const std::optional<std::vector<Owned>> owned = owned_by_rectangle(program, grid);
  if (!owned) {
    report.add(id, fmt::format("items own more than the {} tiles that are walked", kMostTilesWalked));
    return;
  }
  if (covers_once(id, grid, *owned, "owned", report) && once && written)
    check_agreement(program, id, *owned, *written, report);
}

// What is not addressed stays; what is may be addressed by one item alone.
void check_state(const Program& program, TensorId id, const std::vector<Owned>& written, Report& report) {
  const TileGrid grid = grid_of(program.at(id), program.tile);
  for (size_t i = 1; i < written.size(); ++i)
    if (written[i].tile == written[i - 1].tile && written[i].item != written[i - 1].item) {
      report.add_item(id, written[i].item,
                      fmt::format("{} is stored by item {} too, each index at its low bound",
                                  place(written[i].tile, grid), written[i - 1].item));
      return;
    }
}

}  // namespace

void check_addresses(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const StageId id{i};
    const AccessPattern* pattern = program.at(id).pattern();
    if (!pattern) continue;
    const Tensor& tensor = program.at(*program.at(id).tensor());
    const auto tiles = to_signed(grid_of(tensor, program.tile).tiles());
    if (!context.outside[i]) {
      const Interval range = context.reach[i];
      report.certificate.moves.push_back({id, static_cast<uint64_t>(range.low), static_cast<uint64_t>(range.high)});
      continue;
    }
    for (uint64_t n = 0; n < program.work.items.size(); ++n) {
      const Interval range = tile_range(program, *pattern, program.work.items[n]);
      if (Interval{0, tiles - 1}.contains(range)) continue;
      report.add_item(id, n,
                      fmt::format("reaches tiles {} to {}, {} past the last of the {} of {}", range.low, range.high,
                                  saturated_add(range.high, 1 - tiles), tiles, tensor.name));
      break;
    }
  }
}

void check_coverage(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  report_claimed(context, report);
  const std::vector<Stores> stores = stores_by_tensor(program);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    const TensorId id{t};
    const Tensor& tensor = program.at(id);
    if (!tensor.result()) continue;
    const std::optional<std::vector<Owned>> written = written_by_items(context, stores[t]);
    const bool reachable = std::none_of(stores[t].begin(), stores[t].end(),
                                        [&](StageId s) { return static_cast<bool>(context.outside[index(s)]); });
    if (!written && reachable)
      report.add(id, fmt::format("items store more than the {} tiles that are walked", kMostTilesWalked));
    if (tensor.role == TensorRole::Output) check_output(context, id, stores[t], written, report);
    if (tensor.role == TensorRole::State && written) check_state(program, id, *written, report);
    if (written) report.certificate.results.push_back({id, written->size(), grid_of(tensor, program.tile).tiles()});
  }
}

}  // namespace tw::spatial
