#include "spatial/issue.h"

#include <algorithm>

namespace tw::spatial {

Issue runs(const Program& program, const Stage& stage) {
  if (const AccessPattern* pattern = stage.pattern()) {
    const TileAddr& origin = pattern->origin;
    return {origin.names(LoopVar::SubH) || origin.names(LoopVar::SubW),
            origin.names(LoopVar::KBlock) && program.fold()};
  }
  return {program.work.plan.sub_blocks() > 1, stage.level == FoldLevel::Body && program.fold()};
}

Issue pushes(const Program& program, const Stage& stage) {
  Issue issue = runs(program, stage);
  if (stage.matmul()) issue.per_block = false;
  return issue;
}

std::vector<BufferUses> buffer_uses(const Program& program) {
  std::vector<BufferUses> uses(program.buffers.size());
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const auto add = [&](BufferId id, std::vector<StageId> BufferUses::*list) {
      if (index(id) >= uses.size()) return;
      std::vector<StageId>& stages = uses[index(id)].*list;
      if (stages.empty() || stages.back() != StageId{i}) stages.push_back(StageId{i});
    };
    for (const BufferId in : program.stages[i].ins) add(in, &BufferUses::readers);
    for (const BufferId out : program.stages[i].outs) add(out, &BufferUses::writers);
  }
  return uses;
}

std::optional<Carry> carry_of(const Program& program, BufferId buffer, const BufferUses& uses) {
  if (program.at(buffer).kind != BufferKind::Scratch || uses.writers.size() != 2) return std::nullopt;
  const Stage& start = program.at(uses.writers[0]);
  const Stage& update = program.at(uses.writers[1]);
  if (start.level != FoldLevel::Prologue || update.level != FoldLevel::Body || !update.reads(buffer))
    return std::nullopt;
  return Carry{buffer, uses.writers[0], uses.writers[1]};
}

std::optional<StageId> popper(const BufferUses& uses) {
  return uses.readers.empty() ? std::nullopt : std::optional(uses.readers.back());
}

Issue pops(const Program& program, BufferId buffer, const BufferUses& uses) {
  const std::optional<StageId> last = popper(uses);
  if (!last || uses.writers.empty()) return {};
  const Stage& reader = program.at(*last);
  Issue issue = runs(program, reader);
  const Stage& writer = program.at(uses.writers.front());
  // Held for all blocks, or pushed once after them.
  const bool held = writer.level == FoldLevel::Prologue && !carry_of(program, buffer, uses);
  if (held || writer.matmul()) issue.per_block = false;
  return issue;
}

}  // namespace tw::spatial
