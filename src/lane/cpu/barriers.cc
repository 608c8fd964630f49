#include "lane/cpu/barriers.h"

#include "lane/cpu/quant.h"
#include "lane/uses.h"

namespace tw::lane::cpu {

namespace {

// Bytes of one space: the arena, or the shared memory of launches; elements of one state.
struct Region {
  uint32_t space = 0;
  uint64_t from = 0, to = 0;
  [[nodiscard]] bool meets(const Region& other) const {
    return space == other.space && from < other.to && other.from < to;
  }
};
constexpr uint32_t kArena = 0, kShared = 1, kFirstState = 2;

bool any_meets(const std::vector<Region>& regions, const Region& region) {
  for (const Region& other : regions) {
    if (other.meets(region)) return true;
  }
  return false;
}

// What launches since the last barrier touch.
struct Since {
  std::vector<Region> touched, written;
};

class Regions {
 public:
  Regions(const Schedule& schedule, const Launch& launch, bool shared) {
    for (const Use& use : uses(launch, schedule.numerics)) add(schedule, use);
    if (shared) writes_.push_back({kShared, 0, 1});
  }

  [[nodiscard]] bool conflicts(const Since& since) const {
    for (const Region& region : writes_) {
      if (any_meets(since.touched, region)) return true;
    }
    for (const Region& region : reads_) {
      if (any_meets(since.written, region)) return true;
    }
    return false;
  }
  void add_to(Since& since) const {
    since.touched.insert(since.touched.end(), reads_.begin(), reads_.end());
    since.touched.insert(since.touched.end(), writes_.begin(), writes_.end());
    since.written.insert(since.written.end(), writes_.begin(), writes_.end());
  }

 private:
  void add(const Schedule& schedule, const Use& use) {
    if (use.form == TouchForm::Weight) return;
    Region region;
    if (use.form == TouchForm::Quantized) {
      const Buffer& home = schedule.at(quantized_home(schedule, use.buffer));
      region.from = *home.quantized_at;
      region.to = region.from + quant_bytes(home.size(), schedule.numerics == Numerics::Int8x2 ? 2 : 1);
    } else {
      const lane::Span span = span_of(schedule, use.buffer);
      const Buffer& root = schedule.at(span.root);
      if (root.fill == Fill::Constant) return;
      if (root.fill == Fill::State) {
        region = {kFirstState + index(span.root), span.from, span.to};
      } else {
        const uint32_t width = bytes_of(root.dtype);
        region.from = *root.plain_at + span.from * width;
        region.to = *root.plain_at + span.to * width;
      }
    }
    if (use.reads) reads_.push_back(region);
    if (use.writes) writes_.push_back(region);
  }

  std::vector<Region> reads_, writes_;
};

}  // namespace

std::vector<bool> barriers_before(const Schedule& schedule, const std::vector<LaunchRun>& runs) {
  std::vector<bool> barriers(schedule.launches.size(), false);
  Since spread, solo;
  for (size_t at = 0; at < schedule.launches.size(); ++at) {
    const Regions regions(schedule, schedule.launches[at].launch, runs[at].shared);
    if (regions.conflicts(spread) || (!runs[at].solo && regions.conflicts(solo))) {
      barriers[at] = true;
      spread = solo = {};
    }
    regions.add_to(runs[at].solo ? solo : spread);
  }
  return barriers;
}

}  // namespace tw::lane::cpu
