#pragma once

// Which launches of a schedule touch which elements, both ways round.

#include <cstdint>
#include <span>
#include <vector>

#include "lane/schedule.h"

namespace tw::plan {

// The span of every buffer in its root, in time linear in the buffers however long the chains of aliases are.
std::vector<lane::Span> spans_of(const lane::Schedule& schedule);

// What a launch does to a span of a root buffer, in whichever form. Constants are left out: nothing writes them.
struct Touch {
  lane::BufferId root = lane::kNoBuffer;
  uint64_t from = 0, to = 0;  // elements
  bool reads = false, writes = false;
};

// An index over the launches of a schedule as they are when it is made. Launches are named by their place then; a pass
// that empties places or fills one with another launch says so, and the lists of readers and writers stay as they were.
class Touches {
 public:
  explicit Touches(const lane::Schedule& schedule);

  [[nodiscard]] std::span<const Touch> of(uint32_t at) const { return {&touches_[of_[at].begin], of_[at].count}; }
  // The launches that read (write) some of a root buffer, in order.
  [[nodiscard]] std::span<const uint32_t> readers(lane::BufferId root) const { return readers_.of(root); }
  [[nodiscard]] std::span<const uint32_t> writers(lane::BufferId root) const { return writers_.of(root); }

  // The place `at` holds `launch` now. Requires that it touches no root that the launch before did not touch, and no
  // more spans.
  void replace(uint32_t at, const lane::Launch& launch);
  void clear(uint32_t at) { of_[at].count = 0; }

 private:
  struct Slice {
    uint64_t begin = 0, count = 0;
  };
  // Places by root, each root's side by side.
  struct Lists {
    std::vector<uint32_t> places;
    std::vector<uint64_t> begins;  // by root, and the end of the last
    [[nodiscard]] std::span<const uint32_t> of(lane::BufferId root) const {
      return std::span(places).subspan(begins[index(root)], begins[index(root) + 1] - begins[index(root)]);
    }
  };

  // Appends what the launch touches.
  void collect(const lane::Launch& launch, std::vector<Touch>& to) const;
  [[nodiscard]] Lists lists(bool Touch::*kind) const;

  const lane::Schedule& schedule_;
  std::vector<lane::Span> spans_;
  std::vector<Touch> touches_;  // launch after launch
  std::vector<Slice> of_;
  Lists readers_, writers_;
};

}  // namespace tw::plan
