#pragma once

// How often the stages of a section run and hand pages over. The evaluator, the certificate and the printers all count
// by these rules:
//
//   for item:  for sub-block:  Prologue stages;  for block: Body stages;  Epilogue stages
//
// A movement is issued as often as the variables its steps name say, even with a stride of 0: KBlock once a block, SubH
// or SubW once a sub-block, neither once an item.

#include <cstdint>
#include <vector>

#include "spatial/program.h"

namespace tw::spatial {

// Times an item: 1, times sub_blocks when per_sub_block, times the blocks of the fold when per_block.
struct Issue {
  bool per_sub_block = false;
  bool per_block = false;

  [[nodiscard]] uint64_t times(const BlockPlan& plan, uint64_t blocks) const {
    return (per_sub_block ? plan.sub_blocks() : 1) * (per_block ? blocks : 1);
  }
  bool operator==(const Issue&) const = default;
};

// How often the stage runs.
Issue runs(const Program& program, const Stage& stage);
// How often it pushes its page: as it runs, but a tile product only after the last block.
Issue pushes(const Program& program, const Stage& stage);

// Who writes and reads a buffer, in declaration order.
struct BufferUses {
  std::vector<StageId> writers;
  std::vector<StageId> readers;
};
// By BufferId; one pass over the stages. Ids out of range are left out.
std::vector<BufferUses> buffer_uses(const Program& program);

// A carry of a fold: a scratch that a prologue stage starts and one body stage, which reads it too, updates.
struct Carry {
  BufferId buffer{};
  StageId start{};
  StageId update{};
};
std::optional<Carry> carry_of(const Program& program, BufferId buffer, const BufferUses& uses);

// Which stage pops the page: the last reader declared. A page that a prologue stage pushed is held for all blocks: it
// is popped once a sub-block, after the last of them.
std::optional<StageId> popper(const BufferUses& uses);
// How often the page is popped.
Issue pops(const Program& program, BufferId buffer, const BufferUses& uses);

}  // namespace tw::spatial
