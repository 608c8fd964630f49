#include <algorithm>
#include <unordered_map>

#include "spatial/certify/checks.h"
#include "spatial/certify/fingerprint.h"

namespace tw::spatial {
namespace {

constexpr uint64_t kAfterAll = UINT64_MAX;

std::string round_text(uint64_t sub_block, uint64_t block) {
  const auto number = [](uint64_t n) { return n == kAfterAll ? std::string("the last") : fmt::format("{}", n); };
  return fmt::format("sub-block {}, block {}", number(sub_block), number(block));
}

// ---- what a page holds, as a number: equal numbers, equal contents in the same round of the nest ----

class PageContents {
 public:
  explicit PageContents(const CheckContext& context) : program_(context.program), number_(program_.buffers.size()) {
    std::vector<bool> written(program_.tensors.size());
    for (const Stage& stage : program_.stages)
      if (const Store* store = stage.store()) written[index(store->tensor)] = true;
    for (uint32_t i = 0; i < program_.stages.size(); ++i) {
      const Stage& stage = program_.stages[i];
      if (stage.outs.empty()) continue;
      const bool changes = stage.load() && written[index(stage.load()->tensor)];
      const bool several = context.uses[index(stage.outs[0])].writers.size() > 1;
      number_[index(stage.outs[0])] = changes || several ? own_number(i) : number_of(stage);
    }
  }

  // Whether the two addresses are the same in every round of every item.
  [[nodiscard]] bool same_address(const AccessPattern& a, const AccessPattern& b) const {
    if (without_page(a) != without_page(b)) return false;
    if (!a.origin.indirect) return true;
    return number_[index(a.origin.indirect->index)] == number_[index(b.origin.indirect->index)];
  }

 private:
  static AccessPattern without_page(AccessPattern pattern) {
    if (pattern.origin.indirect) pattern.origin.indirect->index = BufferId{0};
    return pattern;
  }
  static uint64_t own_number(uint32_t stage) {
    Fingerprint f;
    f.add("stage");
    f.add(uint64_t{stage});
    return f.low();
  }
  [[nodiscard]] uint64_t number_of(const Stage& stage) const {
    Fingerprint f;
    const Buffer& page = program_.at(stage.outs[0]);
    f.add(static_cast<uint64_t>(page.dtype));
    f.add(page.page_tiles);
    f.add(static_cast<uint64_t>(stage.level));
    if (const Load* load = stage.load()) {
      f.add(uint64_t{index(load->tensor)});
      f.add(without_page(load->pattern));
    }
    if (const Generic* generic = stage.generic()) f.add(*generic);
    if (const MatmulTiles* m = stage.matmul())
      for (const uint32_t word : {m->rows, m->cols, m->inner}) f.add(uint64_t{word});
    for (const BufferId in : stage.ins) f.add(number_[index(in)]);
    return f.low();
  }

  const Program& program_;
  std::vector<uint64_t> number_;
};

// ---- which stores wait for which loads ----

struct StateMoves {
  std::vector<StageId> loads;
  std::vector<StageId> stores;
};

// By state tensor; an input of the same name is the same storage.
std::unordered_map<uint32_t, StateMoves> moves_of_states(const Program& program) {
  std::unordered_map<std::string_view, uint32_t> states;
  for (uint32_t t = 0; t < program.tensors.size(); ++t)
    if (program.tensors[t].role == TensorRole::State) states.emplace(program.tensors[t].name, t);
  std::unordered_map<uint32_t, StateMoves> moves;
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const Stage& stage = program.stages[i];
    const std::optional<TensorId> tensor = stage.tensor();
    if (!tensor) continue;
    const auto state = states.find(program.at(*tensor).name);
    if (state == states.end()) continue;
    StateMoves& all = moves[state->second];
    (stage.load() ? all.loads : all.stores).push_back(StageId{i});
  }
  return moves;
}

// For up to 64 loads at a time, by stage: the loads whose pages a store's page or index comes from.
std::vector<uint64_t> followers(const Program& program, std::span<const StageId> loads) {
  std::vector<uint64_t> own(program.stages.size()), page(program.buffers.size()), out(program.stages.size());
  for (size_t i = 0; i < loads.size(); ++i) own[index(loads[i])] |= uint64_t{1} << i;
  for (size_t i = 0; i < program.stages.size(); ++i) {
    uint64_t mask = own[i];
    for (const BufferId in : program.stages[i].ins) mask |= page[index(in)];
    for (const BufferId to : program.stages[i].outs) page[index(to)] |= mask;
    out[i] = mask;
  }
  return out;
}

// ---- one state ----

struct Write {
  uint64_t tile = 0;
  uint64_t item = 0;
  uint64_t sub_block = 0;
  uint64_t block = 0;
  StageId store{};
};

class StateOrder {
 public:
  StateOrder(const CheckContext& context, const PageContents& contents, const StateMoves& moves, Report& report)
      : context_(context),
        program_(context.program),
        contents_(contents),
        moves_(moves),
        report_(report),
        walked_(program_.stages.size()) {
    collect_writes();
  }

  // Each load against each store; `follows` has bit `bit` where a stage waits for the load.
  void check_load(StageId load, const std::vector<uint64_t>& follows, uint32_t bit) {
    if (context_.outside[index(load)]) return;
    follows_ = &follows;
    bit_ = bit;
    const AccessPattern& pattern = *program_.at(load).pattern();
    bool walk = false;
    for (const StageId store : moves_.stores) {
      walked_[index(store)] = !context_.outside[index(store)] && check_pair(load, pattern, store);
      walk = walk || walked_[index(store)];
    }
    if (walk) check_tiles(load, pattern);
  }

 private:
  void collect_writes() {
    for (const StageId store : moves_.stores) {
      const AccessPattern& pattern = *program_.at(store).pattern();
      if (context_.outside[index(store)] || tiles_of_items(program_, pattern) > kMostTilesWalked) continue;  // others'
      const Issue issue = runs(program_, program_.at(store));
      const bool in_round = issue.per_sub_block || program_.work.plan.sub_blocks() == 1;
      for (uint64_t i = 0; i < program_.work.items.size(); ++i)
        each_tile(program_, pattern, program_.work.items[i], [&](uint64_t tile, uint64_t sub_block, uint64_t block) {
          writes_.push_back({tile, i, in_round ? sub_block : kAfterAll, issue.per_block ? block : kAfterAll, store});
        });
    }
    std::sort(writes_.begin(), writes_.end(), [](const Write& a, const Write& b) { return a.tile < b.tile; });
  }

  [[nodiscard]] bool waits(StageId store) const { return ((*follows_)[index(store)] >> bit_ & 1) != 0; }

  // Where data decides an address, the two must be the same address, or never meet. Answers whether they are to be
  // compared tile by tile: of one address, round by round, each index at its low bound.
  bool check_pair(StageId load, const AccessPattern& pattern, StageId store) {
    const AccessPattern& other = *program_.at(store).pattern();
    if (!pattern.origin.indirect && !other.origin.indirect) return true;
    const Interval reads = context_.reach[index(load)], stored = context_.reach[index(store)];
    if (meet(reads, stored).empty()) return false;
    if (!contents_.same_address(pattern, other)) {
      report_.add(load, fmt::format("reads tiles {} to {} where data says, and {} writes {} to {} in the same section",
                                    reads.low, reads.high, program_.at(store).name, stored.low, stored.high));
    } else if (!waits(store)) {
      report_.add(load,
                  fmt::format("reads the tiles that {} writes, which does not wait for it", program_.at(store).name));
    } else {
      return true;
    }
    return false;
  }

  void check_tiles(StageId load, const AccessPattern& pattern) {
    if (tiles_of_items(program_, pattern) > kMostTilesWalked) {
      report_.add(load, fmt::format("reads more than the {} tiles that are walked", kMostTilesWalked));
      return;
    }
    bool found = false;
    for (uint64_t i = 0; i < program_.work.items.size() && !found; ++i)
      each_tile(program_, pattern, program_.work.items[i], [&](uint64_t tile, uint64_t sub_block, uint64_t block) {
        if (!found) found = races(load, i, {tile, i, sub_block, block, load});
      });
  }

  // Whether a write of the tile can come before the read that should see what was there.
  bool races(StageId load, uint64_t item, const Write& read) {
    const auto from = std::lower_bound(writes_.begin(), writes_.end(), read.tile,
                                       [](const Write& write, uint64_t tile) { return write.tile < tile; });
    for (auto write = from; write != writes_.end() && write->tile == read.tile; ++write) {
      if (!walked_[index(write->store)]) continue;
      const std::string_view store = program_.at(write->store).name;
      if (write->item != item) {
        report_.add_item(load, item,
                         fmt::format("reads tile {}, which {} of item {} writes", read.tile, store, write->item));
        return true;
      }
      if (!waits(write->store)) {
        report_.add_item(load, item,
                         fmt::format("reads tile {}, which {} writes without waiting for it", read.tile, store));
        return true;
      }
      if (std::pair(read.sub_block, read.block) > std::pair(write->sub_block, write->block)) {
        report_.add_item(
            load, item,
            fmt::format("reads tile {} in {}, which {} writes in {}", read.tile, round_text(read.sub_block, read.block),
                        store, round_text(write->sub_block, write->block)));
        return true;
      }
    }
    return false;
  }

  const CheckContext& context_;
  const Program& program_;
  const PageContents& contents_;
  const StateMoves& moves_;
  Report& report_;
  std::vector<Write> writes_;  // by tile
  // Of the load that is looked at:
  std::vector<bool> walked_;  // by stage: a store that it is compared with tile by tile
  const std::vector<uint64_t>* follows_ = nullptr;
  uint32_t bit_ = 0;
};

}  // namespace

void check_state_order(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  const std::unordered_map<uint32_t, StateMoves> states = moves_of_states(program);
  if (states.empty()) return;
  const PageContents contents(context);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    const auto state = states.find(t);
    if (state == states.end() || state->second.stores.empty()) continue;
    const std::vector<StageId>& loads = state->second.loads;
    StateOrder order(context, contents, state->second, report);
    for (size_t from = 0; from < loads.size(); from += 64) {
      const std::span<const StageId> some(loads.data() + from, std::min<size_t>(64, loads.size() - from));
      const std::vector<uint64_t> follows = followers(program, some);
      for (uint32_t i = 0; i < some.size(); ++i) order.check_load(some[i], follows, i);
    }
  }
}

}  // namespace tw::spatial
