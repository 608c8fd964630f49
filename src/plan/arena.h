#pragma once

// Places buffers whose lives do not overlap in the same bytes.

#include <cstdint>
#include <vector>

namespace tw::plan {

// A piece of memory that is needed from launch `first` to launch `last`, both included.
struct Piece {
  uint64_t bytes = 0;
  uint64_t first = 0, last = 0;
  uint64_t at = 0;  // set by place_pieces: byte offset, a multiple of kArenaAlignment
};
inline constexpr uint64_t kArenaAlignment = 64;

// Gives every piece its place, in order of `first`, best fit among the gaps. Near-linear in the number of pieces.
// Returns the bytes of the arena.
uint64_t place_pieces(std::vector<Piece>& pieces);

}  // namespace tw::plan
