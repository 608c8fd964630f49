#include "spatial/evaluate/pages.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "spatial/evaluate/codec.h"

namespace tw::spatial::evaluate {

PageQueue::PageQueue(const Program& program, BufferId buffer, Blank blank)
    : tile_(program.tile),
      dtype_(program.at(buffer).dtype),
      code_bytes_(bytes_of(dtype_)),
      width_(program.width(buffer)),
      blank_(blank),
      pages_(program.at(buffer).depth) {}

void PageQueue::pop() {
  TW_CHECK(count_ > 0, "a page is popped of an empty queue");
  head_ = (head_ + 1) % pages_.size();
  --count_;
}

std::byte* PageQueue::blank(bool keep) {
  TW_CHECK(!full(), "a page is pushed into a full queue");
  Page& page = next();
  if (page.fresh || !keep) {
    page.codes.assign(tile_.rows * width_ * code_bytes_, std::byte{});
    if (blank_ == Blank::Poison) fill_poison(dtype_, page.codes.data(), tile_.rows * width_);
    page.fresh = false;
  }
  page.used_rows = opened_rows_ = tile_.rows;
  return page.codes.data();
}

std::byte* PageQueue::open() {
  TW_CHECK(!full(), "a page is pushed into a full queue");
  Page& page = next();
  if (page.fresh) page.codes.assign(tile_.rows * width_ * code_bytes_, std::byte{});
  page.fresh = false;
  opened_rows_ = 0;
  return page.codes.data();
}

// The rows of the tile from `rows` on are zero; most tiles of flat tensors have one that is not.
void PageQueue::fill_tile(uint64_t number, const std::byte* tile, uint64_t rows) {
  Page& page = next();
  const uint64_t run = tile_.cols * code_bytes_, pitch = width_ * code_bytes_;
  std::byte* to = page.codes.data() + number * run;
  for (uint64_t r = 0; r < rows; ++r) std::memcpy(to + r * pitch, tile + r * run, run);
  for (uint64_t r = rows; r < page.used_rows; ++r) std::memset(to + r * pitch, 0, run);
  page.used_rows = std::max(page.used_rows, rows);
  opened_rows_ = std::max(opened_rows_, rows);
}

void PageQueue::push() {
  next().used_rows = opened_rows_;
  ++count_;
}

void PageQueue::clear() {
  head_ = 0;
  count_ = 0;
}

}  // namespace tw::spatial::evaluate
