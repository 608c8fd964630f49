#pragma once

// One site: the pages and the compiled stages of a program, and what they do for one item.

#include <optional>
#include <variant>
#include <vector>

#include "spatial/evaluate/bindings.h"
#include "spatial/evaluate/evaluate.h"
#include "spatial/evaluate/nest.h"
#include "spatial/evaluate/pages.h"
#include "spatial/evaluate/product.h"
#include "spatial/issue.h"

namespace tw::spatial::evaluate {

class Site {
 public:
  // Both must outlive the site.
  Site(const Program& program, Bindings& bindings);

  // Starts a run: no pages, no counts.
  void reset(PageQueue::Blank blank);
  std::optional<Fault> run(uint64_t item, uint64_t blocks);

  [[nodiscard]] uint64_t tiles_loaded() const { return tiles_loaded_; }
  [[nodiscard]] uint64_t tiles_stored() const { return tiles_stored_; }

 private:
  using Op = std::variant<std::monostate, AnyNest, AnyProduct>;
  struct Plan {
    Op op;
    Issue issue;
    std::vector<BufferId> pops;       // after it ran
    std::vector<BufferId> held_pops;  // after it ran for the last block
    bool keeps = false;               // its page's slots are its own: points it does not write stay blank
  };
  // Where in the nest of an item a stage runs.
  struct Turn {
    LoopPoint at{};
    bool first_sub = true, last_sub = true;
    bool first_block = true, last_block = true;
  };

  void plan_pops();
  bool level(FoldLevel level, const Turn& turn);
  bool step(uint32_t stage, const Turn& turn);
  [[nodiscard]] bool due(const Stage& stage, const Issue& issue, const Turn& turn) const;
  void pop(uint32_t stage, const Turn& turn);

  bool move(const Stage& stage, const Turn& turn);
  bool load_tile(const Stage& stage, uint64_t number, uint64_t tile);
  bool store_tile(const Stage& stage, uint64_t number, uint64_t tile);
  // The linear number of the block's first tile, saturating.
  bool address(const Stage& stage, const Turn& turn, uint64_t& tile);

  bool compute(uint32_t stage, const Turn& turn);
  bool multiply(uint32_t stage, AnyProduct& product, const Turn& turn);

  bool readable(const Stage& stage);
  bool has_room(const Stage& stage, BufferId page);
  bool fail(const Stage& stage, FaultKind kind, const std::string& subject, int64_t value, int64_t low, int64_t high);
  bool fail(const Stage& stage, const StageFault& fault);
  PageQueue& queue(BufferId id) { return queues_[index(id)]; }

  const Program& program_;
  Bindings& bindings_;
  std::vector<Plan> plans_;                      // by stage
  std::array<std::vector<uint32_t>, 3> levels_;  // stages by FoldLevel
  std::vector<BufferId> carries_;
  PageQueue::Blank blank_ = PageQueue::Blank::Zero;
  std::vector<PageQueue> queues_;  // by buffer
  std::vector<const std::byte*> operands_;
  std::optional<Fault> fault_;
  uint64_t item_ = 0;
  uint64_t tiles_loaded_ = 0, tiles_stored_ = 0;
};

}  // namespace tw::spatial::evaluate
