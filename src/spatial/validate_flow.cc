#include <algorithm>

#include "spatial/validate_rules.h"

namespace tw::spatial {
namespace {

bool is_move(const Stage& stage) { return stage.pattern() != nullptr; }

void check_readers(const Program& program, BufferId id, const BufferUses& uses, Findings& out) {
  const Buffer& buffer = program.at(id);
  const bool loaded = program.at(uses.writers.front()).load() != nullptr;
  if (buffer.kind == BufferKind::Scratch) {
    for (const std::vector<StageId>* list : {&uses.writers, &uses.readers})
      for (const StageId stage : *list)
        if (is_move(program.at(stage))) out.add("S20", stage, id, "moves a scratch page");
    return;
  }
  const auto moves =
      std::count_if(uses.readers.begin(), uses.readers.end(), [&](StageId s) { return is_move(program.at(s)); });
  if (uses.readers.size() > 1 && (!loaded || moves > 0))
    out.add("S19", id,
            fmt::format("is read by {} stages, {} and {} first", uses.readers.size(), program.at(uses.readers[0]).name,
                        program.at(uses.readers[1]).name));
}

void check_buffer(const Program& program, BufferId id, const BufferUses& uses, Findings& out) {
  if (uses.writers.empty()) {
    if (uses.readers.empty()) out.add("S18", id, "is neither written nor read");
    for (const StageId reader : uses.readers) out.add("S17", reader, id, "reads a page that no stage writes");
    return;
  }
  if (uses.readers.empty()) {
    out.add("S18", id, "is written and never read");
    return;
  }
  if (index(uses.readers.front()) <= index(uses.writers.front()))
    out.add("S17", uses.readers.front(), id,
            fmt::format("reads the page before {} writes it", program.at(uses.writers.front()).name));
  if (uses.writers.size() > 1 && !carry_of(program, id, uses))
    out.add("S21", id,
            fmt::format("has {} writers, expected one, or two of a carry: {} and {} first", uses.writers.size(),
                        program.at(uses.writers[0]).name, program.at(uses.writers[1]).name));
  if (carry_of(program, id, uses) && program.at(id).depth < 2)
    out.add("S21", id, fmt::format("is a carry of depth {}, expected 2", program.at(id).depth));
  check_readers(program, id, uses, out);
}

// A page is read at its own level or a later one; one that a tile product makes is there after the blocks.
void check_levels(const Program& program, BufferId id, const BufferUses& uses, Findings& out) {
  const std::optional<Carry> carry = carry_of(program, id, uses);
  const Stage& writer = program.at(uses.writers.front());
  FoldLevel from = writer.level;
  if (carry) from = FoldLevel::Body;
  if (writer.matmul() && program.fold()) from = FoldLevel::Epilogue;
  for (const StageId reader : uses.readers) {
    const FoldLevel level = program.at(reader).level;
    if (level < from) out.add("S22", reader, id, fmt::format("reads the page before the level of {}", writer.name));
    const bool leaves = level == FoldLevel::Epilogue && from == FoldLevel::Body && !carry;
    if (leaves && program.fold())
      out.add("S22", reader, id, fmt::format("reads after the blocks a page that {} makes in each", writer.name));
  }
}

}  // namespace

void check_flow(const Program& program, Findings& out) {
  const std::vector<BufferUses> uses = buffer_uses(program);
  for (uint32_t i = 0; i < uses.size(); ++i) {
    check_buffer(program, BufferId{i}, uses[i], out);
    if (!uses[i].writers.empty()) check_levels(program, BufferId{i}, uses[i], out);
  }
}

void check_fold(const Program& program, Findings& out) {
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    const Stage& stage = program.stages[i];
    const AccessPattern* pattern = stage.pattern();
    const bool per_block = pattern && pattern->origin.names(LoopVar::KBlock);
    if (per_block && stage.level != FoldLevel::Body)
      out.add("S22", StageId{i}, "is issued once a block, and is no stage of the body");
    if (pattern && !per_block && program.fold() && stage.level == FoldLevel::Body)
      out.add("S22", StageId{i}, "is a stage of the body, and its address does not name the block");
    if (stage.matmul() && stage.level != FoldLevel::Body)
      out.add("S22", StageId{i}, "is a tile product outside the body");
  }
  if (!program.work.k_trip) return;
  const Trip& trip = *program.work.k_trip;
  const Tensor& tensor = program.at(trip.tensor);
  if (!is_integer(tensor.dtype) || trip.elem >= tensor.size())
    out.add("S23", trip.tensor,
            fmt::format("element {} of it counts the blocks, expected one of {} integers", trip.elem, tensor.size()));
  constexpr int64_t kMost = int64_t{1} << 40;
  if (trip.low > trip.high || trip.low < -kMost || trip.high > kMost || trip.bias < -kMost || trip.bias > kMost ||
      trip.per < 1) {
    out.add("S23",
            fmt::format("a count of {} to {}, {} more, by {} is none", trip.low, trip.high, trip.bias, trip.per));
  } else if (trip.count(trip.high) != program.work.plan.num_blocks || trip.count(trip.low) < 1) {
    out.add("S23", fmt::format("a count of {} to {} makes {} to {} blocks, the plan has {}", trip.low, trip.high,
                               trip.count(trip.low), trip.count(trip.high), program.work.plan.num_blocks));
  }
}

void check_edges(const Program& program, Findings& out) {
  const std::vector<Edge> derived = derive_edges(program);
  if (derived == program.edges) return;
  const auto text = [&](const Edge& e) {
    const bool known = index(e.producer) < program.stages.size() && index(e.consumer) < program.stages.size() &&
                       index(e.buffer) < program.buffers.size();
    return known ? fmt::format("{} -> {} through {}", program.at(e.producer).name, program.at(e.consumer).name,
                               program.at(e.buffer).name)
                 : fmt::format("{} -> {} through {}", index(e.producer), index(e.consumer), index(e.buffer));
  };
  const auto [have, want] = std::mismatch(program.edges.begin(), program.edges.end(), derived.begin(), derived.end());
  out.add("S24", fmt::format("edge {} is {}, expected {}", have - program.edges.begin(),
                             have == program.edges.end() ? "missing" : text(*have),
                             want == derived.end() ? "none" : text(*want)));
}

}  // namespace tw::spatial
