#include "spatial/evaluate/site.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "spatial/evaluate/codec.h"

namespace tw::spatial::evaluate {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

uint64_t add_product(uint64_t sum, uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(sum, product, &sum))
    return std::numeric_limits<uint64_t>::max();
  return sum;
}

int64_t clamped(uint64_t value) { return static_cast<int64_t>(std::min(value, static_cast<uint64_t>(kMost))); }

}  // namespace

Site::Site(const Program& program, Bindings& bindings)
    : program_(program), bindings_(bindings), plans_(program.stages.size()) {
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const Stage& stage = program.stages[i];
    plans_[i].issue = runs(program, stage);
    levels_.at(static_cast<size_t>(stage.level)).push_back(i);
    if (stage.generic()) plans_[i].op = compile_nest(program, stage);
    if (stage.matmul()) plans_[i].op = compile_product(program, stage);
  }
  plan_pops();
}

void Site::plan_pops() {
  const std::vector<BufferUses> uses = buffer_uses(program_);
  for (uint32_t b = 0; b < uses.size(); ++b) {
    const BufferId id{b};
    if (uses[b].writers.empty()) continue;
    const Stage& writer = program_.at(uses[b].writers.front());
    plans_[index(uses[b].writers.front())].keeps = uses[b].writers.size() == 1;
    if (const std::optional<Carry> carry = carry_of(program_, id, uses[b])) {
      // The update takes the place of what it read.
      plans_[index(carry->update)].pops.push_back(id);
      carries_.push_back(id);
    } else if (const std::optional<StageId> last = popper(uses[b])) {
      const bool held = writer.level == FoldLevel::Prologue || writer.matmul();
      Plan& plan = plans_[index(*last)];
      (held ? plan.held_pops : plan.pops).push_back(id);
    }
  }
}

void Site::reset(PageQueue::Blank blank) {
  if (queues_.empty() || blank != blank_) {
    blank_ = blank;
    queues_.clear();
    for (uint32_t i = 0; i < program_.buffers.size(); ++i) queues_.emplace_back(program_, BufferId{i}, blank);
  }
  for (PageQueue& queue : queues_) queue.clear();
  fault_.reset();
  tiles_loaded_ = tiles_stored_ = 0;
}

// ---- the nest of one item ----

std::optional<Fault> Site::run(uint64_t item, uint64_t blocks) {
  item_ = item;
  const WorkItem& work = program_.work.items[item];
  const BlockPlan& plan = program_.work.plan;
  const uint64_t subs = plan.sub_blocks(), across = plan.sub_w();
  for (uint64_t sub = 0; sub < subs; ++sub) {
    Turn turn;
    turn.at = {work.y, work.x, sub / across, sub % across, 0};
    turn.first_sub = sub == 0;
    turn.last_sub = sub + 1 == subs;
    if (!level(FoldLevel::Prologue, turn)) return fault_;
    for (uint64_t block = 0; block < blocks; ++block) {
      turn.at[static_cast<size_t>(LoopVar::KBlock)] = block;
      turn.first_block = block == 0;
      turn.last_block = block + 1 == blocks;
      if (!level(FoldLevel::Body, turn)) return fault_;
    }
    turn.at[static_cast<size_t>(LoopVar::KBlock)] = 0;
    turn.first_block = turn.last_block = true;
    if (!level(FoldLevel::Epilogue, turn)) return fault_;
    for (const BufferId carry : carries_) queue(carry).clear();
  }
  for (uint32_t b = 0; b < queues_.size(); ++b)
    if (const uint64_t left = queues_[b].count(); left > 0)
      return Fault{FaultKind::PageLeft, program_.name, {}, item, program_.buffers[b].name, clamped(left), 0, 0};
  return std::nullopt;
}

bool Site::level(FoldLevel level, const Turn& turn) {
  const std::vector<uint32_t>& stages = levels_.at(static_cast<size_t>(level));
  return std::all_of(stages.begin(), stages.end(), [&](uint32_t stage) { return step(stage, turn); });
}

bool Site::step(uint32_t stage, const Turn& turn) {
  const Stage& what = program_.stages[stage];
  if (!due(what, plans_[stage].issue, turn)) return true;
  if (!readable(what)) return false;
  if (!(what.compute() ? compute(stage, turn) : move(what, turn))) return false;
  pop(stage, turn);
  return true;
}

// Movement that is issued less often than its level comes round: a load the first time, a store the last.
bool Site::due(const Stage& stage, const Issue& issue, const Turn& turn) const {
  if (stage.compute()) return true;
  const bool load = stage.load() != nullptr;
  if (!issue.per_sub_block && !(load ? turn.first_sub : turn.last_sub)) return false;
  return issue.per_block || (load ? turn.first_block : turn.last_block);
}

void Site::pop(uint32_t stage, const Turn& turn) {
  for (const BufferId page : plans_[stage].pops) queue(page).pop();
  if (!turn.last_block) return;
  for (const BufferId page : plans_[stage].held_pops) queue(page).pop();
}

// ---- movement ----

bool Site::move(const Stage& stage, const Turn& turn) {
  const AccessPattern& pattern = *stage.pattern();
  const TensorId tensor = *stage.tensor();
  const bool load = stage.load() != nullptr;
  uint64_t first = 0;
  if (!address(stage, turn, first)) return false;
  if (load) {
    if (!has_room(stage, stage.outs[0])) return false;
    queue(stage.outs[0]).open();
  }
  const uint64_t tiles = bindings_.stored(tensor).grid.tiles();
  for (uint64_t y = 0; y < pattern.block_h; ++y)
    for (uint64_t x = 0; x < pattern.block_w; ++x) {
      const uint64_t tile = add_product(add_product(first, y, pattern.stride_h), x, pattern.stride_w);
      if (tile >= tiles)
        return fail(stage, FaultKind::TileAddress, program_.at(tensor).name, clamped(tile), 0, clamped(tiles - 1));
      const uint64_t number = y * pattern.block_w + x;
      if (!(load ? load_tile(stage, number, tile) : store_tile(stage, number, tile))) return false;
    }
  if (load) queue(stage.outs[0]).push();
  (load ? tiles_loaded_ : tiles_stored_) += pattern.tiles();
  return true;
}

bool Site::address(const Stage& stage, const Turn& turn, uint64_t& tile) {
  const TileAddr& origin = stage.pattern()->origin;
  tile = origin.base;
  for (const spatial::Step& step : origin.steps)
    tile = add_product(tile, step.stride, turn.at[static_cast<size_t>(step.var)]);
  if (!origin.indirect) return true;
  const IndirectTile& indirect = *origin.indirect;
  const Buffer& page = program_.at(indirect.index);
  const int64_t value = integer_at(page.dtype, queue(indirect.index).head(), 0);
  if (value < indirect.low || value > indirect.high)
    return fail(stage, FaultKind::TileIndexRange, page.name, value, indirect.low, indirect.high);
  tile = add_product(tile, static_cast<uint64_t>(value) / indirect.elems_per_tile, indirect.tile_stride);
  return true;
}

bool Site::load_tile(const Stage& stage, uint64_t number, uint64_t tile) {
  const TensorId tensor = *stage.tensor();
  if (const auto wrong = bindings_.load(tensor, tile, item_))
    return fail(stage, *wrong, program_.at(tensor).name, clamped(tile), 0, 0);
  const Stored& from = bindings_.stored(tensor);
  const uint64_t above = tile / from.grid.cols * program_.tile.rows;
  const uint64_t rows = std::min<uint64_t>(program_.tile.rows, from.tensor.rows - above);
  const uint64_t tile_bytes = program_.tile.size() * bytes_of(from.tensor.dtype);
  queue(stage.outs[0]).fill_tile(number, from.codes.data() + tile * tile_bytes, rows);
  return true;
}

// Only what lies in the extent: the padding of a tensor is zero and stays so.
bool Site::store_tile(const Stage& stage, uint64_t number, uint64_t tile) {
  const TensorId tensor = *stage.tensor();
  if (const auto wrong = bindings_.store(tensor, tile, item_))
    return fail(stage, *wrong, program_.at(tensor).name, clamped(tile), 0, 0);
  Stored& to = bindings_.stored(tensor);
  const TileShape shape = program_.tile;
  const uint64_t above = tile / to.grid.cols * shape.rows, left = tile % to.grid.cols * shape.cols;
  const uint64_t rows = std::min<uint64_t>(shape.rows, to.tensor.rows - above);
  const uint64_t cols = std::min<uint64_t>(shape.cols, to.tensor.cols - left);
  const uint64_t code = bytes_of(to.tensor.dtype), run = shape.cols * code;
  const uint64_t pitch = program_.width(stage.ins[0]) * code;
  const std::byte* from = queue(stage.ins[0]).head() + number * run;
  std::byte* into = to.codes.data() + tile * shape.rows * run;
  for (uint64_t r = 0; r < rows; ++r) std::memcpy(into + r * run, from + r * pitch, cols * code);
  return true;
}

// ---- computation ----

bool Site::compute(uint32_t stage, const Turn& turn) {
  const Stage& what = program_.stages[stage];
  Plan& plan = plans_[stage];
  if (auto* product = std::get_if<AnyProduct>(&plan.op)) return multiply(stage, *product, turn);
  if (!has_room(what, what.outs[0])) return false;
  PageQueue& out = queue(what.outs[0]);
  std::byte* page = out.blank(plan.keeps);
  operands_.clear();
  for (const BufferId in : what.ins) operands_.push_back(queue(in).head());
  const std::optional<StageFault> fault =
      std::visit([&](auto& nest) { return nest.run(operands_, page); }, std::get<AnyNest>(plan.op));
  if (fault) return fail(what, *fault);
  out.push();
  return true;
}

bool Site::multiply(uint32_t stage, AnyProduct& product, const Turn& turn) {
  const Stage& what = program_.stages[stage];
  return std::visit(
      [&](auto& sums) {
        if (turn.first_block) sums.start();
        if (const auto fault = sums.add_block(queue(what.ins[0]).head(), queue(what.ins[1]).head()))
          return fail(what, *fault);
        if (!turn.last_block) return true;
        if (!has_room(what, what.outs[0])) return false;
        PageQueue& out = queue(what.outs[0]);
        if (const auto fault = sums.finish(out.blank(plans_[stage].keeps))) return fail(what, *fault);
        out.push();
        return true;
      },
      product);
}

// ---- faults ----

bool Site::readable(const Stage& stage) {
  for (const BufferId in : stage.ins)
    if (queue(in).count() == 0) return fail(stage, FaultKind::PageMissing, program_.at(in).name, 0, 0, 0);
  return true;
}

bool Site::has_room(const Stage& stage, BufferId page) {
  if (!queue(page).full()) return true;
  return fail(stage, FaultKind::PageOverrun, program_.at(page).name, program_.at(page).depth, 0, 0);
}

bool Site::fail(const Stage& stage, FaultKind kind, const std::string& subject, int64_t value, int64_t low,
                int64_t high) {
  fault_ = Fault{kind, program_.name, stage.name, item_, subject, value, low, high};
  return false;
}

bool Site::fail(const Stage& stage, const StageFault& fault) {
  return fail(stage, fault.kind, program_.at(fault.page).name, fault.value, fault.low, fault.high);
}

}  // namespace tw::spatial::evaluate
