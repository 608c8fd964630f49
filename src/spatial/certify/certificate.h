#pragma once

// What the certificate of a program says, as a value: which program it is of, and per check the figures that the check
// came to. It can be written to a file (certificate_json.h) and gone over again by a checker that shares nothing with
// the one that made it but the program's types (recheck.h).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spatial/ids.h"

namespace tw::spatial {

// depth pages of page_bytes; in an item there are at most high_water of them at a time.
struct BufferEvidence {
  uint64_t page_bytes = 0;
  uint32_t depth = 1;
  uint32_t high_water = 0;
  bool operator==(const BufferEvidence&) const = default;
};

// Pages an item pushes and pops through the edge's buffer when the fold runs all its blocks.
struct EdgeEvidence {
  StageId producer{};
  BufferId buffer{};
  StageId consumer{};
  uint64_t pushes = 0;
  uint64_t pops = 0;
  bool operator==(const EdgeEvidence&) const = default;
};

// The tiles a load or store touches over all items, sub-blocks, blocks and admitted indices.
struct MoveEvidence {
  StageId stage{};
  uint64_t first = 0;
  uint64_t last = 0;
  bool operator==(const MoveEvidence&) const = default;
};

// Tiles of a result that the items write, each index taken at its low bound, and the tiles there are.
struct ResultEvidence {
  TensorId tensor{};
  uint64_t written = 0;
  uint64_t tiles = 0;
  bool operator==(const ResultEvidence&) const = default;
};

// Where an operand of a loop nest reads its page, without the part that data adds: over all points at which the
// selects on axes let the body read it. checked_at_run: data moves the read, and the map's own bound on the index does
// not keep it in the page; leaving it is a fault when the program runs.
struct ReadEvidence {
  StageId stage{};
  uint32_t operand = 0;
  int64_t first = 0;
  int64_t last = 0;
  bool checked_at_run = false;
  bool operator==(const ReadEvidence&) const = default;
};

// The checks a certificate stands for, in order.
inline constexpr std::array<std::string_view, 14> kCertificateChecks{
    "structure", "algebra", "capabilities", "local memory", "accumulator", "readers", "rates",
    "liveness",  "folds",   "addresses",    "coverage",     "state order", "reads",   "indices"};

struct Certificate {
  std::string program;
  std::string fingerprint;  // of the program, see fingerprint.h
  std::string target;
  uint64_t footprint = 0;
  uint64_t local_bytes = 0;
  uint64_t accumulator_tiles = 0;
  uint64_t widest_computed_page = 0;  // in tiles
  std::vector<std::string> checks;    // those that passed
  std::vector<BufferEvidence> buffers;
  std::vector<EdgeEvidence> edges;
  std::vector<MoveEvidence> moves;      // by stage
  std::vector<ResultEvidence> results;  // by tensor
  std::vector<ReadEvidence> reads;      // by stage and operand
  bool operator==(const Certificate&) const = default;
};

// ---- a step of several sections ----

// The section that first writes the storage, -1 when none does, and how many tensors of sections read or update it.
struct StorageEvidence {
  int64_t producer = -1;
  uint64_t readers = 0;
  bool operator==(const StorageEvidence&) const = default;
};

struct StepCertificate {
  std::string name;
  std::string target;
  std::vector<Certificate> sections;
  std::vector<StorageEvidence> storages;
  bool operator==(const StepCertificate&) const = default;
};

}  // namespace tw::spatial
