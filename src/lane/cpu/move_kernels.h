#pragma once

// Copies, gathers and cache writes (move.h), as templates over the instruction set.

#include "lane/cpu/join.h"
#include "lane/cpu/move.h"
#include "lane/cpu/reduce.h"
#include "lane/cpu/stored.h"

namespace tw::lane::cpu {

template <class S>
void gather(const GatherArgs& a, Range range, std::byte*) {
  with_stored<S>(a.type, [&](auto stored) {
    using Element = typename decltype(stored)::Element;
    const auto* table = static_cast<const Element*>(a.table);
    for (uint64_t row = range.begin; row < range.end; ++row) {
      const auto from = static_cast<uint64_t>(a.index != nullptr ? a.index[row] : static_cast<int32_t>(a.fixed)) - 1;
      float* out = a.out + row * a.cols;
      convert<S>(stored, table + from * a.cols, StoredF32<S>{}, out, a.cols);
      if (a.scale == 1.0f) continue;
      const auto factor = S::set(a.scale);
      each16<S>(0, a.cols, [=](auto lanes, uint64_t i) { lanes.store(out + i, S::mul(lanes.load(out + i), factor)); });
    }
  });
}

template <class S>
void copy(const CopyArgs& a, Range range, std::byte*) {
  with_stored<S>(a.x_type, [&](auto from) {
    with_stored<S>(a.y_type, [&](auto to) {
      const auto* x = static_cast<const typename decltype(from)::Element*>(a.x) + a.x_offset;
      auto* y = static_cast<typename decltype(to)::Element*>(a.y) + a.y_offset;
      for (uint64_t unit = range.begin; unit < range.end; ++unit)
        convert<S>(from, x + unit * a.x_pitch, to, y + unit * a.y_pitch, a.width);
    });
  });
}

template <class S>
void join(const JoinArgs& a, Range range, std::byte*) {
  for (uint64_t unit = range.begin; unit < range.end; ++unit) {
    store_values<S>(a.y, unit, 0, a.a + unit * a.ha, a.ha);
    store_values<S>(a.y, unit, a.ha, a.b + unit * a.hb, a.hb);
  }
}

template <class S>
void transpose(const TransposeArgs& a, Range range, std::byte*) {
  for (uint64_t c = range.begin; c < range.end; ++c)
    for (uint64_t r = 0; r < a.rows; ++r) a.y[c * a.rows + r] = a.x[r * a.cols + c];
}

template <class S>
void cache_write(const CacheWriteArgs& a, Range range, std::byte*) {
  with_stored<S>(a.to.type, [&](auto stored) {
    using Stored = decltype(stored);
    auto* data = const_cast<typename Stored::Element*>(static_cast<const typename Stored::Element*>(a.to.data));
    for (uint64_t item = range.begin; item < range.end; ++item) {
      const uint64_t head = item % a.kv_heads;
      const uint64_t sequence = item / a.kv_heads / a.rows;
      const auto first =
          static_cast<uint64_t>(a.position != nullptr ? a.position[sequence] : static_cast<int32_t>(a.fixed)) - 1;
      const uint64_t j = first + item / a.kv_heads % a.rows;
      const float* src = a.src + item * a.width;
      auto* to = data + cache_begin(a.to, sequence) + head * a.to.head_stride;
      if (!a.to.blocked) {
        convert<S>(StoredF32<S>{}, src, stored, to + j * a.to.position_stride, a.width);
        continue;
      }
      auto* lane = to + j / kPositionBlock * kPositionBlock * a.width + j % kPositionBlock;
      store_every<S>(stored, lane, kPositionBlock, src, a.width);
    }
  });
}

}  // namespace tw::lane::cpu
