#pragma once

// Which launches of a batch's sequences can be one launch over all of them, and which launch that is.

#include <cstdint>
#include <optional>
#include <span>

#include "lane/schedule.h"
#include "plan/sequence_arrays.h"

namespace tw::plan {

// In the order in which they are merged: consumers before producers, so that a producer only has to move past later
// sequences' launches of kinds that are merged already, never past one that its own sequence reads.
enum class SequenceKind : uint8_t { Delta, Gates, Conv, Attention, Join, SetRow, Rope, ArgMax };
inline constexpr size_t kSequenceKinds = 8;

// The kind of a launch of one row of one sequence, and the part that its result is of an array of the sequences.
struct SequenceMember {
  SequenceKind kind;
  lane::BufferId array = lane::kNoBuffer;
  uint32_t sequence = 0;
};
std::optional<SequenceMember> sequence_member(const lane::Schedule& schedule, const lane::Launch& launch);

// `launches` holds one launch a sequence, in their order. The launch over all of them, when the operands that differ
// are the sequences' parts of common arrays or their positions, everything else is equal, and no launch writes what
// another one reads.
std::optional<lane::Launch> merged_launch(const lane::Schedule& schedule, const Positions& positions,
                                          std::span<const lane::Launch* const> launches);

}  // namespace tw::plan
