#include <algorithm>
#include <array>

#include "spatial/certify/checks.h"

namespace tw::spatial {
namespace {

// ---- rates ----

struct Rate {
  Issue issue;
  uint64_t more = 0;  // pages a sub-block beyond what issue says: the first value of a carry, its last read
};

// What the writer pushes and the popping reader pops. Requires a buffer with both.
struct Balance {
  Rate push;
  Rate pop;
};
Balance balance_of(const Program& program, BufferId id, const BufferUses& uses) {
  const std::optional<Carry> carry = carry_of(program, id, uses);
  if (!carry) return {{pushes(program, program.at(uses.writers.front()))}, {pops(program, id, uses)}};
  const Issue blocks = runs(program, program.at(carry->update));
  const bool taken = program.at(*popper(uses)).level == FoldLevel::Epilogue;
  return {{blocks, 1}, {blocks, taken ? uint64_t{1} : uint64_t{0}}};
}

uint64_t an_item(const Program& program, const Rate& rate) {
  const BlockPlan& plan = program.work.plan;
  return rate.issue.times(plan, plan.num_blocks) + rate.more * plan.sub_blocks();
}

// Whether the two are equal for every admitted number of blocks, and where they are not.
std::string difference(const Program& program, const Balance& balance) {
  const bool subs = program.work.plan.sub_blocks() > 1;
  if (subs && balance.push.issue.per_sub_block != balance.pop.issue.per_sub_block)
    return balance.push.issue.per_sub_block ? "a sub-block is pushed, an item popped"
                                            : "an item is pushed, a sub-block popped";
  if (program.fold() && balance.push.issue.per_block != balance.pop.issue.per_block)
    return balance.push.issue.per_block ? "a block is pushed, one after all blocks popped"
                                        : "is pushed for all blocks, one a block popped";
  if (balance.push.more > balance.pop.more)
    return "more is pushed: what a fold carries is never taken after its blocks";
  return {};
}

// ---- liveness: the nest of one item as one sequence ----

// One page more a block or sub-block shows in the second round, and what is the same after two rounds is the same after
// any number: the state after a round is all that the next one sees.
constexpr uint64_t kRounds = 2;

struct Position {
  uint64_t sub_block = 0;
  uint64_t block = 0;
  bool last_sub_block = false;
  bool last_block = false;
};

class TokenFlow {
 public:
  TokenFlow(const CheckContext& context, Report& report)
      : program_(context.program),
        uses_(context.uses),
        report_(report),
        pages_(program_.buffers.size()),
        high_water_(program_.buffers.size()),
        reported_(program_.buffers.size()) {
    for (uint32_t i = 0; i < uses_.size(); ++i) {
      popper_.push_back(popper(uses_[i]));
      carry_.push_back(uses_[i].readers.empty() ? std::nullopt : carry_of(program_, BufferId{i}, uses_[i]));
      const bool flows = !uses_[i].readers.empty() && !uses_[i].writers.empty();
      pop_issue_.push_back(flows ? pops(program_, BufferId{i}, uses_[i]) : Issue{});
    }
    for (uint32_t i = 0; i < program_.stages.size(); ++i)
      by_level_.at(static_cast<size_t>(program_.stages[i].level)).push_back(StageId{i});
  }

  // One item; false where a stage could not go on.
  bool run_item(uint64_t sub_blocks, uint64_t blocks) {
    for (uint64_t s = 0; s < sub_blocks; ++s) {
      const bool last_sub = s + 1 == sub_blocks;
      run_level(FoldLevel::Prologue, {s, 0, last_sub, blocks == 1});
      for (uint64_t b = 0; b < blocks; ++b) run_level(FoldLevel::Body, {s, b, last_sub, b + 1 == blocks});
      run_level(FoldLevel::Epilogue, {s, blocks - 1, last_sub, true});
    }
    return !failed_;
  }

  [[nodiscard]] const std::vector<uint64_t>& pages() const { return pages_; }
  [[nodiscard]] uint64_t high_water(BufferId id) const { return high_water_[index(id)]; }

 private:
  void run_level(FoldLevel level, const Position& at) {
    for (const StageId id : by_level_.at(static_cast<size_t>(level)))
      if (issued(program_.at(id), at)) run_stage(id, at);
  }

  // What is issued once an item or a sub-block is loaded before the first round that needs it and stored after the
  // last.
  [[nodiscard]] bool issued(const Stage& stage, const Position& at) const {
    const Issue issue = runs(program_, stage);
    const bool first_of = stage.load() != nullptr;
    if (!issue.per_sub_block && program_.work.plan.sub_blocks() > 1 &&
        !(first_of ? at.sub_block == 0 : at.last_sub_block))
      return false;
    const bool repeated = stage.level == FoldLevel::Body && program_.fold() && !issue.per_block;
    return !repeated || (first_of ? at.block == 0 : at.last_block);
  }

  void run_stage(StageId id, const Position& at) {
    const Stage& stage = program_.at(id);
    for (size_t i = 0; i < stage.ins.size(); ++i)
      if (pages_[index(stage.ins[i])] == 0)
        fail(id, stage.ins[i], at, "waits for a page that nothing pushes before it");
    if (!stage.matmul() || at.last_block)
      for (const BufferId out : stage.outs) push(id, out, at);
    for (size_t i = 0; i < stage.ins.size(); ++i) {
      const BufferId in = stage.ins[i];
      const bool again = std::find(stage.ins.begin(), stage.ins.begin() + static_cast<std::ptrdiff_t>(i), in) !=
                         stage.ins.begin() + static_cast<std::ptrdiff_t>(i);
      if (!again && pops_page(id, in, at) && pages_[index(in)] > 0) --pages_[index(in)];
    }
  }

  [[nodiscard]] bool pops_page(StageId id, BufferId page, const Position& at) const {
    const std::optional<Carry>& carry = carry_[index(page)];
    if (carry && carry->update == id) return true;
    if (popper_[index(page)] != id) return false;
    // A page held for all blocks goes with the last of them.
    return pop_issue_[index(page)].per_block || program_.at(id).level != FoldLevel::Body || at.last_block;
  }

  void push(StageId id, BufferId out, const Position& at) {
    const uint64_t depth = program_.at(out).depth;
    uint64_t& pages = pages_[index(out)];
    if (pages >= depth) {
      fail(id, out, at, fmt::format("pushes page {} into room for {}", pages + 1, depth));
      return;
    }
    ++pages;
    high_water_[index(out)] = std::max(high_water_[index(out)], pages);
  }

  void fail(StageId id, BufferId page, const Position& at, std::string_view what) {
    failed_ = true;
    if (reported_[index(page)]) return;
    reported_[index(page)] = true;
    report_.add(id, page, fmt::format("{} (sub-block {}, block {})", what, at.sub_block, at.block));
  }

  const Program& program_;
  const std::vector<BufferUses>& uses_;
  Report& report_;
  std::vector<uint64_t> pages_;
  std::vector<uint64_t> high_water_;
  std::vector<bool> reported_;
  std::vector<std::optional<StageId>> popper_;
  std::vector<std::optional<Carry>> carry_;
  std::vector<Issue> pop_issue_;
  std::array<std::vector<StageId>, 3> by_level_;
  bool failed_ = false;
};

}  // namespace

void check_readers(const CheckContext& context, Report& report) { report_claimed(context, report); }

void check_rates(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  std::vector<Balance> balances(program.buffers.size());
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const BufferUses& uses = context.uses[i];
    if (uses.writers.empty() || uses.readers.empty()) continue;  // the readers' check
    balances[i] = balance_of(program, BufferId{i}, uses);
    if (const std::string text = difference(program, balances[i]); !text.empty())
      report.add(*popper(uses), BufferId{i},
                 fmt::format("{} pushes {} pages an item, {} are popped: one {}", program.at(uses.writers.front()).name,
                             an_item(program, balances[i].push), an_item(program, balances[i].pop), text));
  }
  for (const Edge& edge : program.edges) {
    if (index(edge.buffer) >= balances.size()) continue;
    const Balance& balance = balances[index(edge.buffer)];
    report.certificate.edges.push_back(
        {edge.producer, edge.buffer, edge.consumer, an_item(program, balance.push), an_item(program, balance.pop)});
  }
}

void check_liveness(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  const BlockPlan& plan = program.work.plan;
  TokenFlow flow(context, report);
  const uint64_t blocks = std::min(plan.num_blocks, kRounds);
  const bool went = flow.run_item(std::min(std::max<uint64_t>(plan.sub_blocks(), 1), kRounds), blocks);
  if (went)
    for (uint32_t i = 0; i < program.buffers.size(); ++i)
      if (const uint64_t left = flow.pages()[i]; left > 0)
        report.add(BufferId{i}, fmt::format("still holds {} of its {} pages after an item: later items find it full",
                                            left, program.buffers[i].depth));
  report.certificate.buffers.resize(program.buffers.size());
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    report.certificate.buffers[i].high_water = static_cast<uint32_t>(flow.high_water(BufferId{i}));
}

}  // namespace tw::spatial
