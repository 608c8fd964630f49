#pragma once

// What can go wrong while a program runs: values, each naming the stage, the item, what was read or written, the number
// that was met and the range it had to be in. Nothing after a fault runs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::spatial::evaluate {

enum class FaultKind : uint8_t {
  IndexRange,      // the value of an index, of an indirect term or a guard
  TileIndexRange,  // the value of the index of a tile address
  PageOffset,      // where a map reads in its page
  TileAddress,     // the tile that a load or store moves
  TripRange,       // the count of a fold; before any item runs
  Overflow,        // an integer result, or one on the way to it, which is then not told
  DivisionByZero,  // of integers
  UnwrittenRead,   // a tile that nobody wrote
  StaleRead,       // a tile that another item, or a stage nothing orders it with, writes in the same section
  WriteConflict,   // a tile of a result that was stored before in the same section
  WrongVersion,    // a tensor read before the section that has to write it, or after one that overwrites it
  PageMissing,     // a read of a queue without a page
  PageOverrun,     // a push into a full queue
  PageLeft,        // a page that nobody popped in the item that made it
};
inline constexpr int kFaultKinds = 14;
std::string_view name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::IndexRange;
  std::string section;
  std::string stage;    // empty for TripRange and WrongVersion
  uint64_t item = 0;    // number in the program's list
  std::string subject;  // the tensor or the buffer
  int64_t value = 0;
  int64_t low = 0;  // what is admitted, both ends included
  int64_t high = 0;
  bool operator==(const Fault&) const = default;
};
std::string to_text(const Fault& fault);

}  // namespace tw::spatial::evaluate
