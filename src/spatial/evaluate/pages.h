#pragma once

// The pages of one buffer: a ring of planes. A plane has tile.rows rows of page_tiles * tile.cols elements, row-major;
// only the page at the head can be read, and one that was popped is gone.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spatial/program.h"

namespace tw::spatial::evaluate {

class PageQueue {
 public:
  // What the points that nobody writes hold.
  enum class Blank : uint8_t { Zero, Poison };

  PageQueue(const Program& program, BufferId buffer, Blank blank);

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] bool full() const { return count_ == pages_.size(); }

  // Requires a page.
  [[nodiscard]] const std::byte* head() const { return pages_[head_].codes.data(); }
  void pop();
  // The page that push() will add, blank: for a stage that always writes the same points, keep says that they may keep
  // what the slot held. Requires room.
  std::byte* blank(bool keep);
  // The same for one that is filled tile by tile with fill_tile(), which leaves no point out.
  std::byte* open();
  void fill_tile(uint64_t number, const std::byte* tile, uint64_t rows);
  void push();
  void clear();

 private:
  struct Page {
    std::vector<std::byte> codes;
    uint64_t used_rows = 0;  // rows that may hold something, of a page that was never pushed too
    bool fresh = true;
  };
  Page& next() { return pages_[(head_ + count_) % pages_.size()]; }

  TileShape tile_;
  Precision dtype_;
  uint64_t code_bytes_, width_;
  Blank blank_;
  std::vector<Page> pages_;
  uint64_t head_ = 0, count_ = 0;
  uint64_t opened_rows_ = 0;  // the same of what the page to be pushed was given
};

}  // namespace tw::spatial::evaluate
