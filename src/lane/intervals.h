#pragma once

// A set of numbers kept as disjoint, joined half-open intervals.

#include <cstdint>
#include <map>

namespace tw::lane {

class Intervals {
 public:
  void insert(uint64_t from, uint64_t to);
  // Whether every number of [from, to) is in the set.
  [[nodiscard]] bool covers(uint64_t from, uint64_t to) const;
  // Whether some number of [from, to) is.
  [[nodiscard]] bool meets(uint64_t from, uint64_t to) const;

 private:
  std::map<uint64_t, uint64_t> ends_;  // by start
};

}  // namespace tw::lane
