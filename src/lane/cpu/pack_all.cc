#include "lane/cpu/pack_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/interrupt.h"

namespace tw::lane::cpu {
namespace {

// Bytes of the file in one piece: enough to be worth a system call, few enough to share out and to hold twice.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

struct Piece {
  size_t item = 0;
  uint64_t begin = 0, end = 0;  // panels
};

uint64_t file_bytes(const PackItem& item) { return item.of_file ? item.rows.count * item.rows.row_bytes : 0; }

// Items in the order in which they lie in the file, which a system reads ahead.
std::vector<size_t> file_order(const std::vector<PackItem>& items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return items[a].rows.data < items[b].rows.data; });
  return order;
}

std::vector<Piece> pieces_of(const std::vector<PackItem>& items) {
  std::vector<Piece> pieces;
  for (const size_t at : file_order(items)) {
    const Packed& shape = items[at].shape;
    const uint64_t panels = shape.panels(), bytes = std::max<uint64_t>(1, shape.panel_bytes());
    const uint64_t step = std::max<uint64_t>(1, kPieceBytes / bytes);
    for (uint64_t begin = 0; begin < panels; begin += step)
      pieces.push_back({at, begin, std::min(begin + step, panels)});
  }
  return pieces;
}

// The rows of the file that panels [begin, end) are made of, where they lie together.
std::optional<std::span<const std::byte>> source_bytes(const PackItem& item, uint64_t begin, uint64_t end) {
  if (!item.of_file || item.input_rows || !item.rows.order.empty()) return std::nullopt;
  const Packed& shape = item.shape;
  const auto first_row = [&](uint64_t panel) {
    return panel / shape.group_panels() * shape.n + panel % shape.group_panels() * kPanel;
  };
  const uint64_t first = first_row(begin), last = first_row(end);
  return std::span(item.rows.data + first * item.rows.row_bytes, (last - first) * item.rows.row_bytes);
}

// All rows of the file that an item is made of, and those between them.
std::span<const std::byte> source_bytes(const PackItem& item) {
  const graph::Rows& rows = item.rows;
  if (rows.count == 0) return {};
  if (rows.order.empty()) return {rows.data, rows.count * rows.row_bytes};
  const auto [low, high] = std::minmax_element(rows.order.begin(), rows.order.end());
  return {rows.data + *low * rows.row_bytes, (uint64_t{*high} - *low + 1) * rows.row_bytes};
}

class Packing {
 public:
  Packing(const std::vector<PackItem>& items, std::byte* memory, const std::vector<uint64_t>& offsets,
          const Preparation& preparation)
      : items_(items),
        memory_(memory),
        offsets_(offsets),
        preparation_(preparation),
        pieces_(pieces_of(items)),
        left_(items.size()) {
    for (const Piece& piece : pieces_) left_[piece.item].fetch_add(1, std::memory_order_relaxed);
    for (const PackItem& item : items) total_ += file_bytes(item);
  }

  void work(unsigned thread) {
    const auto next = [this] { return counter_.next(pieces_.size(), 1); };
    for (Range range = next(); range.begin < range.end && !interrupted(); range = next()) {
      pack_piece(pieces_[range.begin]);
      if (thread == 0 && preparation_.progress) preparation_.progress(std::min(done_.load(), total_), total_);
    }
  }

  [[nodiscard]] bool interrupted() const { return is_set(preparation_.interrupted); }
  [[nodiscard]] uint64_t total() const { return total_; }

 private:
  void pack_piece(const Piece& piece) {
    const PackItem& item = items_[piece.item];
    (item.input_rows ? pack_input_rows : pack)(item.rows, item.shape, memory_ + offsets_[piece.item], piece.begin,
                                               piece.end);
    const auto source = source_bytes(item, piece.begin, piece.end);
    if (source && preparation_.packed) preparation_.packed(*source);
    done_.fetch_add(file_bytes(item) * (piece.end - piece.begin) / item.shape.panels(), std::memory_order_relaxed);
    const bool last = left_[piece.item].fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (last && item.of_file && preparation_.packed) preparation_.packed(source_bytes(item));
  }

  const std::vector<PackItem>& items_;
  std::byte* memory_;
  const std::vector<uint64_t>& offsets_;
  const Preparation& preparation_;
  std::vector<Piece> pieces_;
  std::vector<std::atomic<size_t>> left_;  // pieces of each item
  uint64_t total_ = 0;
  ItemCounter counter_;
  std::atomic<uint64_t> done_{0};
};

}  // namespace

Result<LargeMemory> pack_all(std::vector<PackItem>& items, Pool& pool, const Preparation& preparation) {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
  for (const PackItem& item : items) {
    offsets.push_back(bytes);
    bytes += (item.shape.bytes() + kPackAlign - 1) / kPackAlign * kPackAlign;
  }
  LargeMemory memory = LargeMemory::allocate(bytes);
  if (memory.empty() && bytes != 0)
    return refuse(RefusalKind::TooLarge, "weights", fmt::format("the machine gives no room for their {} bytes", bytes),
                  "Try a smaller model, or the same one in a smaller format.");
  Packing packing(items, memory.data(), offsets, preparation);
  pool.run([&](unsigned thread) { packing.work(thread); });
  if (packing.interrupted()) return refuse(RefusalKind::Interrupted, "weights", "loading was interrupted");
  if (preparation.progress) preparation.progress(packing.total(), packing.total());
  for (size_t i = 0; i < items.size(); ++i) items[i].shape.data = memory.data() + offsets[i];
  return memory;
}

}  // namespace tw::lane::cpu
