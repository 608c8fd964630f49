#include "plan/running.h"

#include <algorithm>
#include <unordered_map>

#include "base/round.h"

namespace tw::plan {

namespace {

using lane::Launch;

// Segments of sums (docs/numerics.md): counts of splits never exceed them.
constexpr uint64_t kSegment = 64;
constexpr uint64_t kAttentionChunk = 128;
// Rows up to which an attention shares out the chunks of its cache instead of tiles of rows.
constexpr uint64_t kFewRows = 8;

// The launch that runs inside: a fold's first, to the end.
Launch& inner(Launch& launch) {
  auto* fold = std::get_if<lane::Fold>(&launch);
  return fold != nullptr ? inner(fold->parts.front()) : launch;
}

class Running {
 public:
  Running(const Knobs& knobs, lane::Schedule& schedule, std::vector<fuse::Missed>* missed)
      : knobs_(knobs), schedule_(schedule), missed_(missed) {}

  void run() {
    note_slices();
    for (lane::Planned& planned : schedule_.launches) {
      if (!knobs_.holds("rows_a_warp")) set_rows_a_warp(planned);
      set_splits(inner(planned.launch));
      if (auto* attention = std::get_if<lane::Attention>(&inner(planned.launch))) set_attention(*attention);
      if (auto* argmax = std::get_if<lane::ArgMax>(&planned.launch)) set_advance(*argmax);
    }
  }

 private:
  // Outputs that one unit sums side by side: a vector of them, when the product has as many.
  [[nodiscard]] uint32_t rows_a_warp(uint64_t n) const {
    return static_cast<uint32_t>(std::min<uint64_t>(knobs_.chip.vector_floats, n));
  }

  void set_rows_a_warp(lane::Planned& planned) {
    uint32_t* per_warp = nullptr;
    uint64_t n = 0;
    Launch& launch = inner(planned.launch);
    if (auto* l = std::get_if<lane::Gemv>(&launch)) per_warp = &l->per_warp, n = l->n;
    if (auto* l = std::get_if<lane::GemvGlu>(&launch)) per_warp = &l->per_warp, n = l->n;
    if (auto* l = std::get_if<lane::Moe>(&launch); l != nullptr && l->rows == 1) {
      per_warp = &l->per_warp, n = l->spec.hidden;
    }
    if (auto* l = std::get_if<lane::GemmParts>(&launch)) {
      per_warp = &l->per_warp, n = l->parts.front().n;
      for (const lane::GemmPart& part : l->parts) n = std::min(n, part.n);
    }
    if (per_warp == nullptr) return;
    if (rows_a_warp(n) < 2) {
      if (missed_ != nullptr)
        missed_->push_back({"rows_a_warp", planned.ops, "there is one row, or a vector is one value"});
      return;
    }
    *per_warp = rows_a_warp(n);
    schedule_.fusions.push_back({"rows_a_warp", planned.ops});
  }

  // Parts that each of n sums over k is cut into, so that every unit has work.
  [[nodiscard]] uint32_t splits(uint64_t n, uint64_t k) const {
    const uint64_t wanted = ceil_div(knobs_.chip.blocks, std::max<uint64_t>(1, ceil_div(n, knobs_.chip.vector_floats)));
    return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, ceil_div(k, kSegment)));
  }

  void set_splits(Launch& launch) {
    if (auto* l = std::get_if<lane::GemvF32>(&launch)) l->split = splits(l->n * l->m, l->k);
    if (auto* l = std::get_if<lane::GateProj>(&launch)) l->parts = splits(l->heads, l->k);
    if (auto* l = std::get_if<lane::Moe>(&launch)) l->router_split = splits(l->spec.experts * l->rows, l->d);
  }

  void set_attention(lane::Attention& a) {
    const bool windowed = a.window.kind != graph::Window::Kind::None;
    const uint64_t span = windowed ? std::min<uint64_t>(a.len, a.window.size) : a.len;
    a.per_block = static_cast<uint32_t>(a.group);
    a.splits = static_cast<uint32_t>(std::max<uint64_t>(1, ceil_div(span, kAttentionChunk)));
    a.parallel = a.rows <= kFewRows;
    if (shares_rows(a)) a.shared = std::min(a.splits, std::max(1U, knobs_.chip.blocks));
  }

  // One key/value head whose values are part of its key rows: a row of the cache serves all query heads at once.
  [[nodiscard]] bool shares_rows(const lane::Attention& a) const {
    if (!lane::quantizes(knobs_.numerics) || a.rows > kFewRows || a.split || a.group != a.heads) return false;
    if (a.hd % 4 != 0 || a.vd % 2 != 0 || (a.heads * a.hd + a.hd) * sizeof(float) > knobs_.chip.shared_bytes)
      return false;
    if (a.k == a.v) return a.v_stride == a.hd && a.v_offset % 2 == 0 && a.v_offset + a.vd <= a.hd;
    const auto found = slices_.find(lane::index(a.v));
    if (found == slices_.end()) return false;
    const lane::Slice& slice = found->second;
    return slice.x == a.k && slice.every == a.hd && slice.from % 2 == 0 && slice.from + a.vd <= a.hd &&
           slice.width == a.v_stride && a.v_offset == 0;
  }

  void note_slices() {
    for (const lane::Planned& planned : schedule_.launches) {
      if (const auto* slice = std::get_if<lane::Slice>(&planned.launch)) slices_.emplace(lane::index(slice->y), *slice);
    }
  }

  // In a step of one row a sequence the arg-max of the step's result moves token and position on.
  void set_advance(lane::ArgMax& argmax) {
    if (knobs_.shim == nullptr || schedule_.form.kind == graph::Form::Kind::Chunk || argmax.rows != 1) return;
    for (uint32_t s = 0; s < schedule_.io.sequences.size(); ++s) {
      if (schedule_.io.sequences[s].next != argmax.out) continue;
      argmax.advance = lane::Advance{schedule_.io.tokens, schedule_.io.sequences[s].position, s};
    }
  }

  const Knobs& knobs_;
  lane::Schedule& schedule_;
  std::vector<fuse::Missed>* missed_;
  std::unordered_map<uint32_t, lane::Slice> slices_;
};

}  // namespace

void set_running_parameters(const Knobs& knobs, lane::Schedule& schedule, std::vector<fuse::Missed>* missed) {
  Running(knobs, schedule, missed).run();
}

}  // namespace tw::plan
