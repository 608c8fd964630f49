#pragma once

// What a launch does to buffers, derived from its one declaration (`visit`). The planner and the verifier ask nothing
// else.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "lane/launch.h"

namespace tw::lane {

enum class TouchForm : uint8_t { Plain, Quantized, Weight };

// One operand of a launch under given numerics.
struct Use {
  std::string_view name;
  BufferId buffer = kNoBuffer;
  TouchForm form = TouchForm::Plain;
  bool reads = false;
  bool writes = false;
  bool typed = false;             // may be stored in 16 bits
  uint64_t whole = 0;             // a write of this many values from the first on; 0: not such a write
  std::optional<RowAt> rows;      // a write of rows of a table ...
  uint64_t row_count = 0;         // ... this many
  std::optional<Part> part;       // a write of units: unit u at u * pitch + offset ...
  uint64_t units = 0, width = 0;  // ... this many, this wide
};

// Every operand in declaration order; of a Fold, both parts' less what `then` reads of `first`'s results.
std::vector<Use> uses(const Launch& launch, Numerics numerics);

// Calls `change` with every buffer id of the launch, so that a pass can rename buffers.
void rename_buffers(Launch& launch, const std::function<BufferId(BufferId)>& change);

// The activation that is read quantized under quantized numerics, or kNoBuffer; of a Fold, its first part's.
BufferId projected_input(const Launch& launch);

}  // namespace tw::lane
