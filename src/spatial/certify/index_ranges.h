#pragma once

// What the integers of a page can be, as far as the program itself says: from tables of params, from the bounds that
// its uses check, backwards through sums that lead to them, and forwards through bodies. Of anything else, all that the
// page's precision holds.
//
// An index that a bound refuses is a fault when the program runs. So what a page can be is what its values can be in a
// run without such a fault: the bounds of unconditional uses hold for the values they were computed from.

#include <cstdint>
#include <optional>
#include <vector>

#include "spatial/certify/interval.h"
#include "spatial/issue.h"
#include "spatial/program.h"

namespace tw::spatial {

// Elements `where` of a page are refused unless they lie in `value`.
struct Demand {
  Interval where;
  Interval value;
  bool operator==(const Demand&) const = default;
};

struct IndexRanges {
  std::vector<std::vector<Demand>> demands;      // by buffer
  std::vector<std::optional<Interval>> values;   // by buffer: of every element that is written, and 0
  std::vector<std::optional<Interval>> results;  // by stage: of an integer body, before the page limits it
  std::vector<bool> decides;                     // by buffer: an index or the bound of a select comes from it

  // What the elements `where` of a page can be, when anything is known.
  [[nodiscard]] std::optional<Interval> read(BufferId page, Interval where) const;
};

// Stages that are malformed are passed over.
IndexRanges index_ranges(const Program& program, const std::vector<BufferUses>& uses,
                         const std::vector<bool>& malformed);

// Offsets that a map reads over the whole space, without its index.
Interval affine_range(const Generic& generic, const ElemAccess& map);
// All values of an integer precision.
Interval range_of(Precision precision);

}  // namespace tw::spatial
