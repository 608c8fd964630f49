#pragma once

// Rotary embedding (rope.h), as a template over the instruction set.

#include "lane/cpu/norm_kernels.h"
#include "lane/cpu/rope.h"

namespace tw::lane::cpu {

template <class S>
void rope(const RopeArgs& a, Range range, std::byte* scratch) {
  for (uint64_t head = range.begin; head < range.end; ++head) {
    const uint64_t row = head / a.per_row;
    const float* x = a.x + head * a.x_pitch;
    float* y = store_place(a.y, head, 0, reinterpret_cast<float*>(scratch));
    if (a.normed) {
      scale_row<S>(x, inverse_root_mean(sum_of_squares<S>(x, a.width), a.width, a.eps), a.norm_weight, nullptr, y,
                   a.width);
      x = y;
    }
    uint64_t table_row = row;
    if (a.position != nullptr) {
      const auto first = static_cast<uint64_t>(a.position[a.position_a_row ? row : 0] - 1);
      table_row = a.position_a_row ? first : first + row;
    }
    const float* cosine = a.cos + table_row * a.half;
    const float* sine = a.sin + table_row * a.half;
    each16<S>(0, a.half, [&](auto lanes, uint64_t i) {
      const auto x1 = lanes.load(x + i);
      const auto x2 = lanes.load(x + a.half + i);
      const auto c = lanes.load(cosine + i);
      const auto s = lanes.load(sine + i);
      lanes.store(y + i, S::fma(x1, c, S::neg(S::mul(x2, s))));
      lanes.store(y + a.half + i, S::fma(x1, s, S::mul(x2, c)));
    });
    if (x != y) each16<S>(2 * a.half, a.width, [&](auto lanes, uint64_t i) { lanes.store(y + i, lanes.load(x + i)); });
    store_rest<S>(a.y, head, 0, y, a.width);
  }
}

template <class S>
void rope_parts(const RopePartsArgs& a, Range range, std::byte* scratch) {
  each_part(a.sides, a.count, range, [&](const RopeArgs& side, Range own) { rope<S>(side, own, scratch); });
}

}  // namespace tw::lane::cpu
